import 'lmdb';

declare module 'lmdb' {
  /** Decodes a key from its bytes; the package exports this function without a type. */
  export function bufferToKeyValue(bytes: Buffer): unknown;
}
