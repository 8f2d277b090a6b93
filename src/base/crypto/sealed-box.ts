/** NaCl's `crypto_box` (X25519, XSalsa20, Poly1305) through libsodium. */
import { sodium } from './sodium.ts';

export const BOX_KEY_BYTES = 32;
export const BOX_NONCE_BYTES = 24;
export const BOX_MAC_BYTES = 16;

export interface BoxKeys {
  readonly publicKey: Buffer;
  readonly secretKey: Buffer;
}

/** The key pair of a 32-byte seed. */
export function boxKeysFromSeed(seed: Buffer): BoxKeys {
  const keys = { publicKey: Buffer.alloc(BOX_KEY_BYTES), secretKey: Buffer.alloc(BOX_KEY_BYTES) };
  sodium.crypto_box_seed_keypair(keys.publicKey, keys.secretKey, seed);
  return keys;
}

/** Null if the recipient's key has small order, so that anyone could open the box. */
export function sealBox(
  text: Buffer,
  nonce: Buffer,
  recipient: Buffer,
  secretKey: Buffer,
): Buffer | null {
  const box = Buffer.alloc(BOX_MAC_BYTES + text.length);
  try {
    sodium.crypto_box_easy(box, text, nonce, recipient, secretKey);
    return box;
  } catch {
    return null;
  }
}

/** Null if the box is not for this key, or not from this sender. */
export function openBox(
  box: Buffer,
  nonce: Buffer,
  sender: Buffer,
  secretKey: Buffer,
): Buffer | null {
  const text = Buffer.alloc(box.length - BOX_MAC_BYTES);
  return sodium.crypto_box_open_easy(text, box, nonce, sender, secretKey) ? text : null;
}
