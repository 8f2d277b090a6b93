/**
 * What one sovereign says of another. MembershipAttestation: portable evidence that a subject belongs to a sovereign
 * [core-5-7]; RecognitionPolicy: whose attestations a sovereign accepts, unsigned [core-5-8]; RecognitionTreaty: one
 * sovereign's signed recognition of another [core-5-9].
 */
import Type, { type Static } from 'typebox';
import type { VerifySignature } from '../../base/crypto/primitives.ts';
import { compareCodePoints } from '../../base/json/write.ts';
import { Datetime, FreeForm, instantOf, nullable, recordReader, Signatures } from './record.ts';
import { type CandidateKeys, isSignedByAny, withinBudget } from './signed-record.ts';

/** The status at the issuer at the time of signing. */
export const RECORD_STATUSES = ['active', 'suspended', 'revoked'] as const;

export const Status = Type.Enum([...RECORD_STATUSES], { default: 'active' });

export const MembershipAttestation = Type.Object({
  attestation_id: Type.String(),
  issuer_sovereign_id: Type.String(),
  subject_id: Type.String(),
  subject_public_key: nullable(Type.String()),
  roles: Type.Array(Type.String(), { default: [] }),
  status: Status,
  issued_at: Datetime,
  valid_from: Datetime,
  expires_at: Datetime,
  issued_by: Type.String(),
  claims: FreeForm,
  signatures: Signatures,
});

export type MembershipAttestation = Static<typeof MembershipAttestation>;

export const readMembershipAttestation = recordReader(MembershipAttestation, hasValidWindow);

export interface ValidityWindow {
  readonly issued_at: string;
  readonly valid_from: string;
  readonly expires_at: string;
}

/** A window ends after it begins, and nothing is issued after its end. */
export function hasValidWindow({ issued_at, valid_from, expires_at }: ValidityWindow): boolean {
  const end = instantOf(expires_at);
  return end > instantOf(valid_from) && instantOf(issued_at) <= end;
}

export const RecognizedIssuer = Type.Object({
  sovereign_id: Type.String(),
  public_keys: Type.Array(Type.String(), { minItems: 1 }),
  allowed_roles: Type.Array(Type.String(), { default: [] }),
  accepted_statuses: Type.Array(Status, { default: ['active'] }),
});

export const RecognitionPolicy = Type.Object({
  local_sovereign_id: Type.String(),
  recognized_issuers: Type.Array(RecognizedIssuer, { default: [] }),
  revoked_attestation_ids: Type.Array(Type.String(), { default: [] }),
});

export type RecognizedIssuer = Static<typeof RecognizedIssuer>;
export type RecognitionPolicy = Static<typeof RecognitionPolicy>;

const readShape = recordReader(RecognitionPolicy);

/** Reads a policy; its revoked ids are a set, returned sorted. */
export function readRecognitionPolicy(received: unknown): RecognitionPolicy | null {
  const policy = readShape(received);
  if (policy === null) return null;
  return { ...policy, revoked_attestation_ids: sortedSet(policy.revoked_attestation_ids) };
}

/** Without duplicates, ordered by code point. */
export function sortedSet(ids: readonly string[]): string[] {
  return [...new Set(ids)].sort(compareCodePoints);
}

export const TreatyScope = Type.Object(
  {
    /** Empty allows any role. */
    allowed_roles: Type.Array(Type.String(), { default: [] }),
    accepted_statuses: Type.Array(Status, { default: ['active'] }),
    claims: FreeForm,
  },
  { default: {} },
);

export const RecognitionTreaty = Type.Object({
  treaty_id: Type.String(),
  issuer_sovereign_id: Type.String(),
  subject_sovereign_id: Type.String(),
  subject_public_keys: Type.Array(Type.String(), { minItems: 1 }),
  scope: TreatyScope,
  status: Status,
  issued_at: Datetime,
  valid_from: Datetime,
  expires_at: Datetime,
  issued_by: Type.String(),
  metadata: FreeForm,
  signatures: Signatures,
});

export type TreatyScope = Static<typeof TreatyScope>;
export type RecognitionTreaty = Static<typeof RecognitionTreaty>;

export const readTreatyScope = recordReader(TreatyScope);
export const readRecognitionTreaty = recordReader(RecognitionTreaty, hasValidWindow);

const REPLACEMENT = /^(?:replaced_by|renewed_by):([\s\S]+)$/;

/** The id of the successor treaty that a revocation reason names; null if it names none. */
export function successorIn(reason: string | null): string | null {
  return reason === null ? null : (REPLACEMENT.exec(reason)?.[1] ?? null);
}

/** Clocks of two sovereigns may differ by this much, in milliseconds. */
const SKEW = 5 * 60_000;

/**
 * Verification of attestations and treaties [core-4-11], [core-4-13]: pure functions of the record, the keys, the known
 * revocations, the time, and the signature verifier. Reasons are closed lists in the order of the checks.
 */

export const ATTESTATION_REASONS = [
  'unknown_issuer',
  'locally_revoked',
  'bad_status',
  'outside_validity_window',
  'role_not_allowed',
  'missing_signature',
  'invalid_signature',
  'accepted',
] as const;
export type AttestationReason = (typeof ATTESTATION_REASONS)[number];

/** The policy's revoked ids must already include those that the verifier itself has revoked. */
export function verifyAttestation(
  attestation: MembershipAttestation,
  policy: RecognitionPolicy,
  now: number,
  verify: VerifySignature,
): AttestationReason {
  const issuer = policy.recognized_issuers.find(
    ({ sovereign_id }) => sovereign_id === attestation.issuer_sovereign_id,
  );
  if (issuer === undefined) return 'unknown_issuer';
  const { revoked_attestation_ids: revoked } = policy;
  if (revoked.includes(attestation.attestation_id)) return 'locally_revoked';
  if (!issuer.accepted_statuses.includes(attestation.status)) return 'bad_status';
  // `active` is required here too, regardless of the accepted statuses.
  if (attestation.status !== 'active' || !isWithin(attestation, now)) {
    return 'outside_validity_window';
  }
  if (!areAllowed(attestation.roles, issuer.allowed_roles)) return 'role_not_allowed';
  if (attestation.signatures.length === 0) return 'missing_signature';
  return isSignedByAny(attestation, issuer.public_keys, verify) ? 'accepted' : 'invalid_signature';
}

/** Whether each role is among the allowed ones; an empty list allows any. */
function areAllowed(roles: readonly string[], allowed: readonly string[]): boolean {
  if (allowed.length === 0) return true;
  const known = new Set(allowed);
  return roles.every((role) => known.has(role));
}

export const TREATY_REASONS = [
  'wrong_issuer',
  'wrong_subject',
  'locally_revoked',
  'bad_status',
  'outside_validity_window',
  'missing_signature',
  'invalid_signature',
  'accepted',
] as const;
export type TreatyReason = (typeof TREATY_REASONS)[number];

/**
 * Why the keys that a treaty was held against are the issuer's: they are our own, a treaty of ours names the key that
 * verified, or only the caller says so.
 */
export const TRUST_BASES = ['own_key', 'treaty', 'caller_keys'] as const;
export type TrustBasis = (typeof TRUST_BASES)[number];

export interface TreatyExpectations {
  readonly issuerKeys: CandidateKeys;
  /** Null accepts any issuer or subject. */
  readonly issuer: string | null;
  readonly subject: string | null;
  /** Whether the verifier itself has revoked the treaty. */
  readonly revoked: boolean;
}

export function verifyTreaty(
  treaty: RecognitionTreaty,
  expected: TreatyExpectations,
  now: number,
  verify: VerifySignature,
): TreatyReason {
  if ((expected.issuer ?? treaty.issuer_sovereign_id) !== treaty.issuer_sovereign_id) {
    return 'wrong_issuer';
  }
  if ((expected.subject ?? treaty.subject_sovereign_id) !== treaty.subject_sovereign_id) {
    return 'wrong_subject';
  }
  if (expected.revoked) return 'locally_revoked';
  if (treaty.status !== 'active') return 'bad_status';
  if (!isWithin(treaty, now)) return 'outside_validity_window';
  if (treaty.signatures.length === 0) return 'missing_signature';
  return isSignedByAny(treaty, expected.issuerKeys, verify) ? 'accepted' : 'invalid_signature';
}

export type TreatyAttestationReason =
  | 'accepted'
  | `treaty_${Exclude<TreatyReason, 'accepted'>}`
  | `attestation_${Exclude<AttestationReason, 'accepted'>}`;

export const TREATY_ATTESTATION_REASONS: readonly TreatyAttestationReason[] = [
  ...TREATY_REASONS.filter((reason) => reason !== 'accepted').map((r) => `treaty_${r}` as const),
  ...ATTESTATION_REASONS.filter((reason) => reason !== 'accepted').map(
    (reason) => `attestation_${reason}` as const,
  ),
  'accepted',
];

export interface TreatyAttestationKnowledge {
  readonly treatyIssuerKeys: CandidateKeys;
  readonly treatyRevoked: boolean;
  readonly attestationRevoked: boolean;
}

/** Verifies an attestation of the treaty's subject, within the treaty's scope. */
export function verifyAttestationWithTreaty(
  attestation: MembershipAttestation,
  treaty: RecognitionTreaty,
  known: TreatyAttestationKnowledge,
  now: number,
  verify: VerifySignature,
): TreatyAttestationReason {
  const expected: TreatyExpectations = {
    issuerKeys: known.treatyIssuerKeys,
    issuer: null,
    subject: attestation.issuer_sovereign_id,
    revoked: known.treatyRevoked,
  };
  const check = withinBudget(verify);
  const ofTreaty = verifyTreaty(treaty, expected, now, check);
  if (ofTreaty !== 'accepted') return `treaty_${ofTreaty}`;
  const revokedIds = known.attestationRevoked ? [attestation.attestation_id] : [];
  const ofAttestation = verifyAttestation(attestation, policyOf(treaty, revokedIds), now, check);
  return ofAttestation === 'accepted' ? 'accepted' : `attestation_${ofAttestation}`;
}

function policyOf(treaty: RecognitionTreaty, revokedIds: readonly string[]): RecognitionPolicy {
  return {
    local_sovereign_id: treaty.issuer_sovereign_id,
    recognized_issuers: [
      {
        sovereign_id: treaty.subject_sovereign_id,
        public_keys: treaty.subject_public_keys,
        allowed_roles: treaty.scope.allowed_roles,
        accepted_statuses: treaty.scope.accepted_statuses,
      },
    ],
    revoked_attestation_ids: [...revokedIds],
  };
}

function isWithin({ valid_from, expires_at }: ValidityWindow, now: number): boolean {
  return instantOf(valid_from) - SKEW <= now && now <= instantOf(expires_at) + SKEW;
}
