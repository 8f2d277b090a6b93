/**
 * Decodes standard base64 of exactly `length` bytes; null for anything else. Only the canonical
 * spelling passes (wire rules 1.5): a key that could be written two ways could evade look-ups by key.
 */
export function decodeBase64(text: string, length: number): Buffer | null {
  if (text.length !== Math.ceil(length / 3) * 4) return null;
  const bytes = Buffer.from(text, 'base64');
  return bytes.length === length && bytes.toString('base64') === text ? bytes : null;
}
