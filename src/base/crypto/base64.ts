/**
 * Decodes standard base64 of exactly `length` bytes; null for anything else. Only the canonical spelling passes
 * [core-1-5]: a key with two spellings could evade look-ups by key.
 */
export function decodeBase64(text: string, length: number): Buffer | null {
  const bytes = Buffer.alloc(length);
  return decodeBase64Into(bytes, text) ? bytes : null;
}

/** Decodes into all of `bytes`, and returns whether the text was their canonical spelling. */
export function decodeBase64Into(bytes: Buffer, text: string): boolean {
  if (text.length !== Math.ceil(bytes.length / 3) * 4) return false;
  return bytes.write(text, 'base64') === bytes.length && bytes.toString('base64') === text;
}
