/** 32 bytes: the last of 43 digits has two bits that count for nothing, and must be zero. */
const CANONICAL = /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/;

/**
 * Whether the text is 32 bytes in their one canonical base64 spelling [core-1-5]: a key with two spellings could evade
 * look-ups by key.
 */
export function isPublicKey(text: string): boolean {
  return CANONICAL.test(text);
}
