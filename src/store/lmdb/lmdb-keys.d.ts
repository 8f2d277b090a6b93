import 'lmdb';

declare module 'lmdb' {
  /** The key that these bytes stand for; the package exports it without a type. */
  export function bufferToKeyValue(bytes: Buffer): unknown;
}
