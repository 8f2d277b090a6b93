/**
 * The results of public verification [core-4-11], [core-4-13], [trust-6]. A rejected record is a normal answer:
 * `reason` says why.
 */
import Type, { type Static } from 'typebox';
import { AGREEMENT_REASONS } from '../records/agreement.ts';
import { BOUNDARY_REASONS } from '../records/boundary-decision.ts';
import { DISCLOSURE_REASONS } from '../records/capability-disclosure.ts';
import { CONSENSUS_REASONS } from '../records/consensus-proof.ts';
import { VIOLATION_TYPES } from '../records/data-usage.ts';
import {
  ATTESTATION_REASONS,
  TREATY_ATTESTATION_REASONS,
  TREATY_REASONS,
  TRUST_BASES,
} from '../records/recognition.ts';
import { Datetime } from '../records/record.ts';
import { EVIDENCE_REASONS } from '../records/trust-evidence.ts';

export const AttestationVerdict = Type.Object({
  accepted: Type.Boolean(),
  reason: Type.Enum([...ATTESTATION_REASONS]),
  issuer_sovereign_id: Type.String(),
  attestation_id: Type.String(),
});

const TrustBasis = Type.Enum([...TRUST_BASES], {
  description:
    "Why the keys are the issuer's: `own_key`, the treaty is in the name of this authority, or no keys were given; " +
    '`treaty`, it verifies under a key that a treaty in force with its issuer names; `caller_keys`, only the caller says so',
});

/** Issuer and subject are those of the treaty, not of the attestation. */
export const TreatyAttestationVerdict = Type.Object({
  accepted: Type.Boolean(),
  reason: Type.Enum([...TREATY_ATTESTATION_REASONS]),
  treaty_id: Type.String(),
  attestation_id: Type.String(),
  issuer_sovereign_id: Type.String(),
  subject_sovereign_id: Type.String(),
  trust_basis: TrustBasis,
});

export const TreatyVerdict = Type.Object({
  accepted: Type.Boolean(),
  reason: Type.Enum([...TREATY_REASONS]),
  treaty_id: Type.String(),
  issuer_sovereign_id: Type.String(),
  subject_sovereign_id: Type.String(),
  trust_basis: TrustBasis,
});

export const AgreementVerdict = Type.Object({
  accepted: Type.Boolean(),
  reason: Type.Enum([...AGREEMENT_REASONS]),
  agreement_id: Type.String(),
});

/** A genuine denial is accepted; `authorized` is true only for an accepted decision that allows. */
export const BoundaryVerdict = Type.Object({
  accepted: Type.Boolean(),
  authorized: Type.Boolean(),
  reason: Type.Enum([...BOUNDARY_REASONS]),
  decision_id: Type.String(),
});

/**
 * Whether evidence is accepted does not depend on its own `verdict` about the other sovereign, which may be any text.
 */
export const EvidenceVerdict = Type.Object({
  accepted: Type.Boolean(),
  reason: Type.Enum([...EVIDENCE_REASONS]),
  evidence_id: Type.String(),
  issuer_sovereign_id: Type.String(),
  verdict: Type.String(),
});

export const DisclosureVerdict = Type.Object({
  valid: Type.Boolean(),
  reason: Type.Enum([...DISCLOSURE_REASONS]),
  commitment_id: Type.String(),
});

export const ConsensusVerdict = Type.Object({
  valid: Type.Boolean(),
  reason: Type.Enum([...CONSENSUS_REASONS]),
  consensus_id: Type.String(),
});

export const DataUsageViolation = Type.Object({
  violation_id: Type.String(),
  intent_id: Type.Union([Type.String(), Type.Null()]),
  record_id: Type.Union([Type.String(), Type.Null()]),
  agent_sovereign_id: Type.String(),
  violation_type: Type.Enum([...VIOLATION_TYPES]),
  detail: Type.String(),
  detected_at: Datetime,
});

/** `violation_reason` is the type of the first violation; null if there is none. */
export const IntentVerdict = Type.Object({
  valid: Type.Boolean(),
  violation_reason: Type.Union([Type.Enum([...VIOLATION_TYPES]), Type.Null()]),
  violation_count: Type.Integer(),
  violations: Type.Array(DataUsageViolation),
});

export type AttestationVerdict = Static<typeof AttestationVerdict>;
export type TreatyAttestationVerdict = Static<typeof TreatyAttestationVerdict>;
export type TreatyVerdict = Static<typeof TreatyVerdict>;
export type AgreementVerdict = Static<typeof AgreementVerdict>;
export type BoundaryVerdict = Static<typeof BoundaryVerdict>;
export type EvidenceVerdict = Static<typeof EvidenceVerdict>;
export type DisclosureVerdict = Static<typeof DisclosureVerdict>;
export type ConsensusVerdict = Static<typeof ConsensusVerdict>;
export type DataUsageViolation = Static<typeof DataUsageViolation>;
export type IntentVerdict = Static<typeof IntentVerdict>;
