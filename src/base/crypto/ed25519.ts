/**
 * Ed25519 through libsodium: the server's only verifier and signer. libsodium refuses keys and points of
 * small order, non-canonical encodings and scalars that are not reduced [core-1-5].
 */
import { createPrivateKey, sign } from 'node:crypto';
import { decodeBase64Into } from './base64.ts';
import type { Signer } from './primitives.ts';
import { sodium } from './sodium.ts';

export const PUBLIC_KEY_BYTES = 32;
export const SIGNATURE_BYTES = 64;
export const SEED_BYTES = 32;

/** A signer from the 32-byte seed; the secret stays inside the closure. */
export function signerFromSeed(seed: Buffer): Signer {
  const publicKey = Buffer.alloc(PUBLIC_KEY_BYTES);
  const secretKey = Buffer.alloc(sodium.crypto_sign_SECRETKEYBYTES);
  sodium.crypto_sign_seed_keypair(publicKey, secretKey, seed);
  return {
    publicKey: publicKey.toString('base64'),
    sign(text) {
      const signature = Buffer.alloc(SIGNATURE_BYTES);
      sodium.crypto_sign_detached(signature, bytesOf(text), secretKey);
      return signature.toString('base64');
    },
  };
}

/** PKCS#8 of an Ed25519 key up to its seed (RFC 8410, 7). */
const PKCS8_HEAD = Buffer.from('302e020100300506032b657004220420', 'hex');

/**
 * Signs texts of megabytes. Ed25519 hashes its text twice, and OpenSSL hashes almost twice as fast as
 * libsodium; the signature is the same, because Ed25519 is deterministic (RFC 8032, 5.1.6).
 */
export function longTextSignerFromSeed(seed: Buffer): Signer {
  const der = Buffer.concat([PKCS8_HEAD, seed]);
  const key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  const { publicKey } = signerFromSeed(seed);
  return { publicKey, sign: (text) => sign(null, bytesOf(text), key).toString('base64') };
}

/** Scratch buffers for decoded keys and signatures. */
const KEY = Buffer.alloc(PUBLIC_KEY_BYTES);
const SIGNATURE = Buffer.alloc(SIGNATURE_BYTES);

/**
 * Whether the base64 `signature` over the UTF-8 `text`, or over bytes, verifies under the base64
 * `publicKey`. Anything that does not decode never verifies.
 */
export function verifySignature(
  publicKey: string,
  text: string | Uint8Array,
  signature: string,
): boolean {
  if (!decodeBase64Into(KEY, publicKey) || !decodeBase64Into(SIGNATURE, signature)) return false;
  return sodium.crypto_sign_verify_detached(SIGNATURE, unshared(bytesOf(text)), KEY);
}

/** A text of usual length is encoded into one shared buffer, which the next text overwrites. */
const TEXT = Buffer.alloc(64 * 1024);
const LONGEST_UTF8_OF_A_UNIT = 3;

function bytesOf(text: string | Uint8Array): Buffer {
  if (typeof text === 'string') {
    return text.length * LONGEST_UTF8_OF_A_UNIT <= TEXT.length
      ? TEXT.subarray(0, TEXT.write(text, 'utf8'))
      : Buffer.from(text, 'utf8');
  }
  return Buffer.from(text.buffer, text.byteOffset, text.byteLength);
}

/** libsodium's binding verifies nothing that is in shared memory. */
function unshared(bytes: Buffer): Buffer {
  return bytes.buffer instanceof ArrayBuffer ? bytes : Buffer.from(bytes);
}
