/** JSON that keeps each number as it was written, and the canonical text that is signed. */
export * from '../../json/parse.ts';
export * from '../../json/value.ts';
export * from '../../json/write.ts';
