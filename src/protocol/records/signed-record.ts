import type {
  LabeledSigner,
  RecordSigner,
  Signer,
  VerifySignature,
} from '../../base/crypto/primitives.ts';
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

/** A signer with one key, labeled with the key itself. */
export function soleSigner(signer: Signer, keyId = signer.publicKey): RecordSigner {
  return { publicKey: signer.publicKey, keyId, sign: (text) => signer.sign(text), previous: null };
}

/** The same keys, each labeled with itself. */
export function labeledByKey({ publicKey, sign, previous }: RecordSigner): RecordSigner {
  const other = previous && { ...previous, keyId: previous.publicKey };
  return { publicKey, keyId: publicKey, sign, previous: other };
}

/** The key of records that have room for one signature: the older one, because others may not be known to all readers. */
export function singleKeyOf(signer: RecordSigner): LabeledSigner {
  return signer.isRolledBack ? signer : (signer.previous ?? signer);
}

/** The record with a signature by each key. */
export function signRecord<T extends JsonObject>(
  record: T,
  signer: RecordSigner,
): T & { readonly signatures: readonly SignatureItem[] } {
  return { ...record, signatures: signaturesOver(signedText(record), signer) };
}

/** The record with its one signature. */
export function signSingly<T extends JsonObject>(
  record: T,
  signer: RecordSigner,
  keyId = singleKeyOf(signer).keyId,
): T & { readonly signature: SignatureItem } {
  const { sig } = signatureOver(singlySignedText(record), singleKeyOf(signer));
  return { ...record, signature: { key_id: keyId, sig } };
}

export function signaturesOver(text: string | Uint8Array, signer: RecordSigner): SignatureItem[] {
  const { previous } = signer;
  const first = signatureOver(text, signer);
  return previous === null ? [first] : [first, signatureOver(text, previous)];
}

export function signatureOver(text: string | Uint8Array, signer: LabeledSigner): SignatureItem {
  return { key_id: signer.keyId, sig: signer.sign(text) };
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
