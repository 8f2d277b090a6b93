/** Datetimes as records spell them. */
export * from '../../base/timestamp.ts';
