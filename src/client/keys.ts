/** Ed25519 in portable JavaScript: for nodes and operators, never on the authority's request path. */
import * as ed25519 from '@noble/ed25519';
import { sha512 } from '@noble/hashes/sha2.js';
import type { Signer } from '../crypto/primitives.ts';
import { decodeBase64, encodeBase64 } from './base64.ts';
import { isStrict } from './strict-ed25519.ts';

export const SEED_BYTES = 32;
const PUBLIC_KEY_BYTES = 32;
const SIGNATURE_BYTES = 64;

// Without it the library signs and verifies asynchronously alone, and only in secure contexts.
ed25519.hashes.sha512 = sha512;

/** A key that signs, wherever its secret is: in memory, in WebCrypto, an agent or a key service. */
export interface SigningKey {
  /** Base64 of the 32-byte public key. */
  readonly publicKey: string;
  /** The 64-byte Ed25519 signature over the bytes. */
  sign(bytes: Uint8Array): Uint8Array | Promise<Uint8Array>;
}

/** The key of a 32-byte seed; the secret stays inside the closure. */
export function keyFromSeed(seed: Uint8Array): SigningKey {
  const secret = Uint8Array.from(seed);
  return {
    publicKey: encodeBase64(ed25519.getPublicKey(secret)),
    sign: (bytes) => ed25519.sign(bytes, secret),
  };
}

/** The signer that builders of records take: they do not wait, so its secret is in memory. */
export function recordSigner(seed: Uint8Array): Signer {
  const secret = Uint8Array.from(seed);
  return {
    publicKey: encodeBase64(ed25519.getPublicKey(secret)),
    sign: (text) =>
      encodeBase64(ed25519.sign(typeof text === 'string' ? utf8(text) : text, secret)),
  };
}

/** A key that exists only in memory; to keep one, make a seed first. */
export function newKey(): SigningKey {
  return keyFromSeed(newSeed());
}

export function newSeed(): Uint8Array {
  return crypto.getRandomValues(new Uint8Array(SEED_BYTES));
}

/** Base64 of the signature over the UTF-8 text. Throws when the key gives anything but 64 bytes. */
export async function signText(key: SigningKey, text: string): Promise<string> {
  const signature = await key.sign(utf8(text));
  if (signature.length === SIGNATURE_BYTES) return encodeBase64(signature);
  throw new TypeError(`An Ed25519 signature has ${SIGNATURE_BYTES} bytes, not ${signature.length}`);
}

/**
 * Whether the base64 signature over the UTF-8 text, or over bytes, verifies, as strictly as at the server; what does
 * not decode never does. The verifiers of records take it where nothing native can be loaded.
 */
export function verifyText(
  publicKey: string,
  text: string | Uint8Array,
  signature: string,
): boolean {
  const key = decodeBase64(publicKey, PUBLIC_KEY_BYTES);
  const bytes = decodeBase64(signature, SIGNATURE_BYTES);
  if (key === null || bytes === null || !isStrict(key, bytes)) return false;
  const message = typeof text === 'string' ? utf8(text) : text;
  return ed25519.verify(bytes, message, key, { zip215: false });
}

function utf8(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
