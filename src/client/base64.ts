/** Standard base64 without Node's Buffer; decoding accepts only the canonical form [core-1-5]. */
export function encodeBase64(bytes: Uint8Array): string {
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''));
}

/** Decodes canonical base64 of exactly `length` bytes; null for anything else. */
export function decodeBase64(text: string, length: number): Uint8Array | null {
  if (text.length !== Math.ceil(length / 3) * 4) return null;
  let bytes: Uint8Array;
  try {
    bytes = Uint8Array.from(atob(text), (unit) => unit.charCodeAt(0));
  } catch {
    return null;
  }
  return bytes.length === length && encodeBase64(bytes) === text ? bytes : null;
}
