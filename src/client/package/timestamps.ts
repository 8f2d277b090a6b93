/** Datetimes as records spell them. */
export * from '../../timestamp.ts';
