/** What the trust-protocol routes find when they verify [trust-6]; the records are their own types. */
import type { AgreementReason } from '../records/agreement.ts';
import type { BoundaryReason } from '../records/boundary-decision.ts';
import type { DisclosureReason } from '../records/capability-disclosure.ts';
import type { ConsensusReason } from '../records/consensus-proof.ts';
import type { ViolationType } from '../records/data-usage.ts';
import type { EvidenceReason } from '../records/trust-evidence.ts';

export type AgreementVerdict = {
  readonly accepted: boolean;
  readonly reason: AgreementReason;
  readonly agreement_id: string;
};

/** A genuine denial is accepted; `authorized` is true only for an accepted decision that allows. */
export type BoundaryVerdict = {
  readonly accepted: boolean;
  readonly authorized: boolean;
  readonly reason: BoundaryReason;
  readonly decision_id: string;
};

/** Evidence is accepted whatever its own `verdict` on the other sovereign says. */
export type EvidenceVerdict = {
  readonly accepted: boolean;
  readonly reason: EvidenceReason;
  readonly evidence_id: string;
  readonly issuer_sovereign_id: string;
  readonly verdict: string;
};

export type DisclosureVerdict = {
  readonly valid: boolean;
  readonly reason: DisclosureReason;
  readonly commitment_id: string;
};

export type ConsensusVerdict = {
  readonly valid: boolean;
  readonly reason: ConsensusReason;
  readonly consensus_id: string;
};

export type DataUsageViolation = {
  readonly violation_id: string;
  readonly intent_id: string | null;
  readonly record_id: string | null;
  readonly agent_sovereign_id: string;
  readonly violation_type: ViolationType;
  readonly detail: string;
  readonly detected_at: string;
};

/** `violation_reason` is the type of the first violation, null when there is none. */
export type IntentVerdict = {
  readonly valid: boolean;
  readonly violation_reason: ViolationType | null;
  readonly violation_count: number;
  readonly violations: readonly DataUsageViolation[];
};
