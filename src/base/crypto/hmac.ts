import { hash } from 'node:crypto';

export const HMAC_KEY_BYTES = 32;
export const HMAC_BYTES = 32;

const BLOCK_BYTES = 64;
const INNER_PAD = 0x36;
const OUTER_PAD = 0x5c;

/** The longest text that `hmacSha256Into` accepts. */
export const LONGEST_HMAC_TEXT = 32 * 1024;

const INNER = Buffer.alloc(BLOCK_BYTES + LONGEST_HMAC_TEXT, INNER_PAD);
const OUTER = Buffer.alloc(BLOCK_BYTES + HMAC_BYTES, OUTER_PAD);

/**
 * Writes the HMAC-SHA256 (RFC 2104) under a key of 32 bytes into `mac`. Takes half the time of Node's `createHmac`,
 * which makes two objects for each one: a heartbeat of a session needs two of these and nothing else of that cost.
 */
export function hmacSha256Into(mac: Buffer, key: Buffer, text: Buffer): void {
  const length = BLOCK_BYTES + text.length;
  if (length > INNER.length) throw new RangeError('The text of an HMAC is too long');
  for (let at = 0; at < HMAC_KEY_BYTES; at += 1) {
    const byte = key[at] as number;
    INNER[at] = byte ^ INNER_PAD;
    OUTER[at] = byte ^ OUTER_PAD;
  }
  text.copy(INNER, BLOCK_BYTES);
  // Decoding base64 costs less than the buffer that `hash` would return.
  OUTER.write(hash('sha256', INNER.subarray(0, length), 'base64'), BLOCK_BYTES, 'base64');
  mac.write(hash('sha256', OUTER, 'base64'), 'base64');
}
