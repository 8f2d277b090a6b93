/** JSON that preserves how each number was written, and the canonical text for signing. */
export * from '../../base/json/parse.ts';
export * from '../../base/json/value.ts';
export * from '../../base/json/write.ts';
