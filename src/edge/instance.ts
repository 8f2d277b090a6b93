/** The identity of this running instance, for operators who run several or replace one with another. */
import { sha256Hex } from '../base/crypto/digest.ts';

export interface Instance {
  /** New at each start. */
  readonly id: string;
  readonly database: { readonly backend: string; readonly schemaVersion: number };
  /** The label of the first key of the network. */
  readonly signingKeyId: string;
  /** Whether others can replace it, and answer at the same time. */
  readonly haMode: 'single' | 'standby' | 'linked';
}

/** Enough hex digits to distinguish keys; the full key is in the genesis block. */
const FINGERPRINT_DIGITS = 16;

/** The first digits of SHA-256 of the public key's bytes. */
export function keyFingerprint(publicKey: string): string {
  return sha256Hex(Buffer.from(publicKey, 'base64')).slice(0, FINGERPRINT_DIGITS);
}
