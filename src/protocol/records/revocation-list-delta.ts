/**
 * RevocationListDelta [core-5-5-1]: the entries added to the revocation list since an earlier version. The signature
 * covers the new version and a digest of all its entries, but not `added`; a client with the earlier version checks by
 * the digest that `added` is the difference. One signature thus serves every earlier version.
 */
import Type, { type Static } from 'typebox';
import type { Sha256, VerifySignature } from '../../base/crypto/primitives.ts';
import { canonicalJson } from '../../base/json/write.ts';
import { Datetime, recordReader, SignatureItem, Signatures } from './record.ts';
import { type CertificateRevocationList, RevokedCertificate } from './revocation-list.ts';

/** The members that are signed once per version. */
export const REVISION_MEMBERS = {
  crl_id: Type.String(),
  sequence: Type.Integer({ minimum: 0 }),
  issued_at: Datetime,
  next_update: Datetime,
  issuer: Type.String(),
  entries_digest: Type.String({ description: 'Hex SHA-256 over all entries of the new version' }),
  list_signatures: Signatures,
} as const;

export const RevocationListDelta = Type.Object({
  base_sequence: Type.Integer({ minimum: 0, description: 'The requested `since`' }),
  ...REVISION_MEMBERS,
  added: Type.Array(RevokedCertificate),
  removed: Type.Array(Type.String(), { description: 'Always empty: entries are never dropped' }),
  signature: SignatureItem,
});

export type RevocationListDelta = Static<typeof RevocationListDelta>;

/** The signed members of a version. */
export type Revision = Pick<RevocationListDelta, keyof typeof REVISION_MEMBERS>;

export const readRevocationListDelta = recordReader(RevocationListDelta);

/** The text that the signature of a version covers. */
export function revisionText(revision: Revision): string {
  const names = Object.keys(REVISION_MEMBERS) as (keyof Revision)[];
  return canonicalJson(Object.fromEntries(names.map((name) => [name, revision[name]])));
}

export type DeltaReason = 'valid' | 'invalid_signature' | 'other_base' | 'wrong_digest';

export interface AppliedDelta {
  readonly reason: DeltaReason;
  /** The complete new version, with the signatures of the full list; null unless the delta is valid. */
  readonly list: CertificateRevocationList | null;
}

/** `held` must already be verified; one of the keys must have signed the delta. */
export function applyDelta(
  held: CertificateRevocationList,
  delta: RevocationListDelta,
  authorityKeys: readonly string[],
  verify: VerifySignature,
  sha256: Sha256,
): AppliedDelta {
  const text = revisionText(delta);
  if (!authorityKeys.some((key) => verify(key, text, delta.signature.sig))) {
    return refused('invalid_signature');
  }
  const isAhead = delta.sequence >= held.sequence;
  if (!isAhead || delta.base_sequence !== held.sequence) return refused('other_base');
  const revoked_certificates = [...held.revoked_certificates, ...delta.added];
  const isWhole =
    delta.removed.length === 0 &&
    entriesDigest(delta.issuer, revoked_certificates, sha256) === delta.entries_digest;
  if (!isWhole) return refused('wrong_digest');
  const { crl_id, sequence, issued_at, next_update, issuer, list_signatures: signatures } = delta;
  const head = { crl_id, sequence, issued_at, next_update, issuer };
  return { reason: 'valid', list: { ...head, revoked_certificates, signatures } };
}

function refused(reason: DeltaReason): AppliedDelta {
  return { reason, list: null };
}

/** Hex SHA-256 over the issuer's key, a line feed and the canonical entries, joined with commas. */
export function entriesDigest(
  issuer: string,
  entries: readonly RevokedCertificate[],
  sha256: Sha256,
): string {
  return sha256.hex(`${issuer}\n${entries.map((entry) => canonicalJson(entry)).join(',')}`);
}
