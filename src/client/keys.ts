/** Ed25519 in portable JavaScript: for nodes and operators, never on the authority's request path. */
import type { Signer } from '../base/crypto/primitives.ts';
import { keyPairFromSeed, verifyStrictly } from '../base/crypto/strict-ed25519.ts';
import { decodeBase64, encodeBase64 } from './base64.ts';

export const SEED_BYTES = 32;
const PUBLIC_KEY_BYTES = 32;
const SIGNATURE_BYTES = 64;

/** A signing key whose secret may be in memory, in WebCrypto, in an agent or in a key service. */
export interface SigningKey {
  /** Base64 of the 32-byte public key. */
  readonly publicKey: string;
  /** Returns the 64-byte Ed25519 signature over the bytes. */
  sign(bytes: Uint8Array): Uint8Array | Promise<Uint8Array>;
}

/** Creates a key from a 32-byte seed; the secret stays inside the closure. */
export function keyFromSeed(seed: Uint8Array): SigningKey {
  const { publicKey, sign } = keyPairFromSeed(seed);
  return { publicKey: encodeBase64(publicKey), sign };
}

/** The signer for record builders, which are synchronous and thus need the secret in memory. */
export function recordSigner(seed: Uint8Array): Signer {
  const { publicKey, sign } = keyPairFromSeed(seed);
  return {
    publicKey: encodeBase64(publicKey),
    sign: (text) => encodeBase64(sign(typeof text === 'string' ? utf8(text) : text)),
  };
}

/** Creates a key that exists only in memory; to keep a key, generate a seed and use `keyFromSeed`. */
export function newKey(): SigningKey {
  return keyFromSeed(newSeed());
}

export function newSeed(): Uint8Array {
  return crypto.getRandomValues(new Uint8Array(SEED_BYTES));
}

/** Returns the base64 signature over the UTF-8 text. Throws when the key returns anything but 64 bytes. */
export async function signText(key: SigningKey, text: string): Promise<string> {
  const signature = await key.sign(utf8(text));
  if (signature.length === SIGNATURE_BYTES) return encodeBase64(signature);
  throw new TypeError(`An Ed25519 signature has ${SIGNATURE_BYTES} bytes, not ${signature.length}`);
}

/**
 * Whether the base64 signature over the text (as UTF-8) or bytes verifies, as strictly as on the server; false for
 * input that does not decode. Record verifiers use it where no native code can be loaded.
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
