/**
 * Ed25519 through libsodium: the only signer and verifier of the server. libsodium refuses keys and
 * points of small order, non-canonical encodings and scalars that are not reduced (wire rules 1.5).
 */
import sodium from 'sodium-native';
import { decodeBase64 } from './base64.ts';

export const PUBLIC_KEY_BYTES = 32;
export const SIGNATURE_BYTES = 64;
export const SEED_BYTES = 32;

export interface Signer {
  /** Base64 of the 32-byte public key. */
  readonly publicKey: string;
  /** Base64 of the 64-byte signature over the UTF-8 text. */
  sign(text: string): string;
}

/** A signer from the 32-byte seed; the secret stays inside the closure. */
export function signerFromSeed(seed: Buffer): Signer {
  const publicKey = Buffer.alloc(PUBLIC_KEY_BYTES);
  const secretKey = Buffer.alloc(sodium.crypto_sign_SECRETKEYBYTES);
  sodium.crypto_sign_seed_keypair(publicKey, secretKey, seed);
  return {
    publicKey: publicKey.toString('base64'),
    sign(text) {
      const signature = Buffer.alloc(SIGNATURE_BYTES);
      sodium.crypto_sign_detached(signature, Buffer.from(text, 'utf8'), secretKey);
      return signature.toString('base64');
    },
  };
}

/**
 * Whether the base64 `signature` over the UTF-8 `text`, or over bytes, verifies under the base64 `publicKey`. Anything
 * that does not decode simply never verifies.
 */
export function verifySignature(
  publicKey: string,
  text: string | Uint8Array,
  signature: string,
): boolean {
  const key = decodeBase64(publicKey, PUBLIC_KEY_BYTES);
  if (key === null) return false;
  const bytes = decodeBase64(signature, SIGNATURE_BYTES);
  if (bytes === null) return false;
  return sodium.crypto_sign_verify_detached(bytes, bytesOf(text), key);
}

function bytesOf(text: string | Uint8Array): Buffer {
  if (typeof text === 'string') return Buffer.from(text, 'utf8');
  return Buffer.from(text.buffer, text.byteOffset, text.byteLength);
}

/** Whether the text is a public key in its one canonical base64 spelling. */
export function isPublicKey(text: string): boolean {
  return decodeBase64(text, PUBLIC_KEY_BYTES) !== null;
}
