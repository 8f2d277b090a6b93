/** Timestamps in the format of records. */
export * from '../../base/timestamp.ts';
