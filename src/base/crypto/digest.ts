import { hash } from 'node:crypto';
import type { Sha256 } from './primitives.ts';

/** Lower-case hex SHA-256. Text is hashed as UTF-8. */
export function sha256Hex(data: string | Uint8Array): string {
  return hash('sha256', data, 'hex');
}

/** SHA-256. Text is hashed as UTF-8. */
export function sha256(data: string | Uint8Array): Buffer {
  return hash('sha256', data, 'buffer');
}

/** Both functions, in the form that records need. */
export const SHA256: Sha256 = { bytes: sha256, hex: sha256Hex };

/** Enough hex digits to distinguish keys; the full key is in the genesis block. */
const FINGERPRINT_DIGITS = 16;

/** The first digits of SHA-256 of the public key's bytes. */
export function keyFingerprint(publicKey: string): string {
  return sha256Hex(Buffer.from(publicKey, 'base64')).slice(0, FINGERPRINT_DIGITS);
}
