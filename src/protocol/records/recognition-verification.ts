/**
 * Verification of attestations and treaties [core-4-11], [core-4-13]: pure functions of the record, the keys, the known
 * revocations, the time, and the signature verifier. Reasons are closed lists in the order of the checks.
 */
import type { VerifySignature } from '../../base/crypto/primitives.ts';
import type { MembershipAttestation, ValidityWindow } from './membership-attestation.ts';
import type { RecognitionPolicy } from './recognition-policy.ts';
import type { RecognitionTreaty } from './recognition-treaty.ts';
import { instantOf } from './record.ts';
import { type CandidateKeys, withinBudget } from './signature-search.ts';
import { isSignedByAny } from './signed-record.ts';

/** Clocks of two sovereigns may differ by this much, in milliseconds. */
const SKEW = 5 * 60_000;

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
