/** Ed25519 in portable JavaScript: for nodes and operators, never on the authority's request path. */
import type { Signer } from '../base/crypto/primitives.ts';
import { keyPairFromSeed, verifyStrictly } from '../base/crypto/strict-ed25519.ts';
import { decodeBase64, encodeBase64 } from './base64.ts';

export const SEED_BYTES = 32;
const PUBLIC_KEY_BYTES = 32;
const SIGNATURE_BYTES = 64;

/** A key that signs, wherever its secret is: in memory, in WebCrypto, an agent or a key service. */
export interface SigningKey {
  /** Base64 of the 32-byte public key. */
  readonly publicKey: string;
  /** The 64-byte Ed25519 signature over the bytes. */
  sign(bytes: Uint8Array): Uint8Array | Promise<Uint8Array>;
}

/** The key of a 32-byte seed; the secret stays inside the closure. */
export function keyFromSeed(seed: Uint8Array): SigningKey {
  const { publicKey, sign } = keyPairFromSeed(seed);
  return { publicKey: encodeBase64(publicKey), sign };
}

/** The signer that builders of records take: they do not wait, so its secret is in memory. */
export function recordSigner(seed: Uint8Array): Signer {
  const { publicKey, sign } = keyPairFromSeed(seed);
  return {
    publicKey: encodeBase64(publicKey),
    sign: (text) => encodeBase64(sign(typeof text === 'string' ? utf8(text) : text)),
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
  if (key === null || bytes === null) return false;
  return verifyStrictly(key, typeof text === 'string' ? utf8(text) : text, bytes);
}

function utf8(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
