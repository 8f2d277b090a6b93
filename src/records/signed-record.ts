import { type Signer, verifySignature } from '../crypto/ed25519.ts';
import type { JsonObject } from '../json/value.ts';
import { canonicalJson } from '../json/write.ts';
import type { SignatureItem } from './record.ts';

/** Bounds on the work one record can ask for (wire rules 1.5). */
const MAX_KEYS = 32;
const MAX_SIGNATURES = 16;

export type SignedRecord = JsonObject & { readonly signatures: readonly SignatureItem[] };

/** The text a list-form signature covers: every member of the record except `signatures`. */
export function signedText(record: JsonObject): string {
  return canonicalJson(record, 'signatures');
}

/** The record with one signature by `signer`, labelled `keyId`. */
export function signRecord<T extends JsonObject>(
  record: T,
  signer: Signer,
  keyId: string,
): T & { readonly signatures: readonly SignatureItem[] } {
  const sig = signer.sign(signedText(record));
  return { ...record, signatures: [{ key_id: keyId, sig }] };
}

/** Whether any signature of the record verifies under any of the keys; `key_id` selects nothing. */
export function isSignedByAny(record: SignedRecord, publicKeys: readonly string[]): boolean {
  const text = signedText(record);
  return record.signatures
    .slice(0, MAX_SIGNATURES)
    .some(({ sig }) =>
      publicKeys.slice(0, MAX_KEYS).some((key) => verifySignature(key, text, sig)),
    );
}
