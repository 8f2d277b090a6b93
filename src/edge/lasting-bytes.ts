const copies = new WeakMap<Uint8Array, Uint8Array>();

/** Published bytes may be overwritten after this turn; readers that need them longer share one copy. */
export function lastingBytes(bytes: Uint8Array): Uint8Array {
  if (!(bytes.buffer instanceof SharedArrayBuffer)) return bytes;
  const copy = copies.get(bytes) ?? new Uint8Array(bytes);
  copies.set(bytes, copy);
  return copy;
}
