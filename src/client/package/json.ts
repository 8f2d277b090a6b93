/** JSON that keeps each number as it was written, and the canonical text that is signed. */
export * from '../../base/json/parse.ts';
export * from '../../base/json/value.ts';
export * from '../../base/json/write.ts';
