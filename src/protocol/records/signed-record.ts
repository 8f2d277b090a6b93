import type { Signer, VerifySignature } from '../../base/crypto/primitives.ts';
import type { JsonObject } from '../../base/json/value.ts';
import { canonicalJson } from '../../base/json/write.ts';
import type { SignatureItem } from './record.ts';
import { type CandidateKeys, coversText } from './signature-search.ts';

export type SignedRecord = JsonObject & { readonly signatures: readonly SignatureItem[] };
export type SinglySignedRecord = JsonObject & { readonly signature: SignatureItem | null };

/** The text that a list-form signature covers: every member of the record except `signatures`. */
export function signedText(record: JsonObject): string {
  return canonicalJson(record, 'signatures');
}

/** The text that a single-form signature covers: every member of the record except `signature`. */
export function singlySignedText(record: JsonObject): string {
  return canonicalJson(record, 'signature');
}

/** The record with one signature by `signer`, labeled `keyId`. */
export function signRecord<T extends JsonObject>(
  record: T,
  signer: Signer,
  keyId: string,
): T & { readonly signatures: readonly SignatureItem[] } {
  return { ...record, signatures: [signatureOver(signedText(record), signer, keyId)] };
}

/** The record with its one signature by `signer`, labeled `keyId`. */
export function signSingly<T extends JsonObject>(
  record: T,
  signer: Signer,
  keyId: string,
): T & { readonly signature: SignatureItem } {
  return { ...record, signature: signatureOver(singlySignedText(record), signer, keyId) };
}

export function signatureOver(text: string, signer: Signer, keyId: string): SignatureItem {
  return { key_id: keyId, sig: signer.sign(text) };
}

/** Whether any signature of the record verifies under any of the keys. */
export function isSignedByAny(
  record: SignedRecord,
  publicKeys: CandidateKeys,
  verify: VerifySignature,
): boolean {
  return coversText(record.signatures, signedText(record), publicKeys, verify);
}

/** Whether the record has its one signature and it verifies under any of the keys. */
export function isSinglySignedByAny(
  record: SinglySignedRecord,
  publicKeys: CandidateKeys,
  verify: VerifySignature,
): boolean {
  const { signature } = record;
  return (
    signature !== null && coversText([signature], singlySignedText(record), publicKeys, verify)
  );
}
