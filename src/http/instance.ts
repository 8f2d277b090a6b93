/** Which running authority this is, for those who operate several or replace one by another. */
import { sha256Hex } from '../crypto/digest.ts';

export interface Instance {
  /** Made anew at each start. */
  readonly id: string;
  readonly database: { readonly backend: string; readonly schemaVersion: number };
  readonly signingKeyId: string;
}

export interface DescribedInstance extends Instance {
  readonly signingKeyFingerprint: string;
}

/** So many hex digits tell keys apart; the whole key is in the genesis block. */
const FINGERPRINT_DIGITS = 16;

/** The first digits of SHA-256 of the public key's bytes. */
export function keyFingerprint(publicKey: string): string {
  return sha256Hex(Buffer.from(publicKey, 'base64')).slice(0, FINGERPRINT_DIGITS);
}
