/** Ed25519 keys in portable JavaScript: for nodes and operators, never on the authority's request path. */
import nacl from 'tweetnacl';
import { decodeBase64, encodeBase64 } from './base64.ts';
import { isStrict } from './strict-ed25519.ts';

export const SEED_BYTES = 32;
const PUBLIC_KEY_BYTES = 32;
const SIGNATURE_BYTES = 64;

export interface KeyPair {
  /** Base64 of the 32-byte public key. */
  readonly publicKey: string;
  /** Base64 of the 64-byte signature over the UTF-8 text. */
  sign(text: string): string;
}

/** The key pair of a 32-byte seed; the secret stays inside the closure. */
export function keyPairFromSeed(seed: Uint8Array): KeyPair {
  const { publicKey, secretKey } = nacl.sign.keyPair.fromSeed(Uint8Array.from(seed));
  return {
    publicKey: encodeBase64(publicKey),
    sign: (text) => encodeBase64(nacl.sign.detached(utf8(text), secretKey)),
  };
}

/** A key pair that exists only in memory; to keep one, make a seed first. */
export function newKeyPair(): KeyPair {
  return keyPairFromSeed(newSeed());
}

export function newSeed(): Uint8Array {
  return crypto.getRandomValues(new Uint8Array(SEED_BYTES));
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
  return nacl.sign.detached.verify(message, bytes, key);
}

function utf8(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
