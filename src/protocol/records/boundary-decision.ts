/**
 * BoundaryDecision: whether a request stays within an agreement [trust-2-6] to [trust-2-8], [trust-4-4], [trust-6-2]. A
 * denial is a normal decision: it is signed, and verification accepts it.
 */

import Type, { type Static } from 'typebox';
import type { VerifySignature } from '../../base/crypto/primitives.ts';
import { formatInstant } from '../../base/timestamp.ts';
import {
  type AgreementProblem,
  type AgreementRecord,
  agreementProblem,
  type TreatyKeys,
} from './agreement.ts';
import { type BuildFailure, type Issuer, keysOf } from './issuer.ts';
import {
  Datetime,
  FreshDatetime,
  FreshId,
  instantOf,
  nullable,
  recordReader,
  SignatureItem,
  Whole,
} from './record.ts';
import { isSinglySignedByAny, signSingly } from './signed-record.ts';

/** How long a decision is valid, in milliseconds. */
const DECISION_VALIDITY = 300_000;

const GateResult = Type.Object({
  gate_name: Type.String(),
  passed: Type.Boolean(),
  detail: Type.String(),
});
export type GateResult = Static<typeof GateResult>;

/** A statement about the freshness of a revocation feed; it is only carried along, covered by the outer signature. */
export const FreshnessProof = Type.Object({
  proof_id: FreshId,
  feed_sovereign_id: Type.String(),
  feed_sequence: Type.Integer({ minimum: 0 }),
  feed_digest: Type.String(),
  attested_at: FreshDatetime,
  proof_valid_until: Datetime,
  issuer_sovereign_id: Type.String(),
  signature: nullable(SignatureItem),
});

/** Set by newer authorities. It has no default, because the signatures of older ones do not cover it. */
const Binding = Type.Optional(Type.Union([Whole, Type.Null()]));

export const BoundaryDecision = Type.Object({
  decision_id: FreshId,
  context_id: Type.String(),
  agreement_id: Type.String(),
  authorized: Type.Boolean(),
  denial_reason: nullable(Type.String()),
  /** In the order of evaluation, up to the first failure. */
  gate_results: Type.Array(GateResult, { default: [] }),
  decision_made_at: FreshDatetime,
  decision_valid_until: Datetime,
  operator_sovereign_id: Type.String(),
  freshness_proof: nullable(FreshnessProof),
  policy_binding: Binding,
  attestation_binding: Binding,
  signature: nullable(SignatureItem),
});
export type BoundaryDecision = Static<typeof BoundaryDecision>;

export const readBoundaryDecision = recordReader(BoundaryDecision);

/** The request under the agreement; its time is always the time of the decision. */
export interface BoundaryRequest {
  readonly requested_capability: string;
  readonly context: {
    /** Null for a new id. */
    readonly context_id: string | null;
    readonly context_freshness_seq: number;
    /** Who asks whom, if the request says so: parties of the agreement. */
    readonly requester_sovereign_id: string | null;
    readonly provider_sovereign_id: string | null;
  };
}

/** Decides a request under an agreement of ours. */
export function buildBoundaryDecision(
  issuer: Issuer,
  agreement: AgreementRecord,
  request: BoundaryRequest,
  treatyKeys: TreatyKeys,
  verify: VerifySignature,
): BoundaryDecision | BuildFailure<AgreementProblem | 'context_party_mismatch'> {
  const problem = agreementProblem(issuer, agreement, treatyKeys, verify);
  if (problem !== null) return { unbuilt: problem };
  const parties = [agreement.offerer_sovereign_id, agreement.responder_sovereign_id];
  const { context_id, requester_sovereign_id, provider_sovereign_id } = request.context;
  const between = [requester_sovereign_id, provider_sovereign_id];
  if (!between.every((sovereign) => sovereign === null || parties.includes(sovereign))) {
    return { unbuilt: 'context_party_mismatch' };
  }
  const { results, denial } = evaluateGates(agreement, request, issuer.now);
  const decision = {
    decision_id: issuer.uuid(),
    context_id: context_id ?? issuer.uuid(),
    agreement_id: agreement.agreement_id,
    authorized: denial === null,
    denial_reason: denial,
    gate_results: results,
    decision_made_at: formatInstant(issuer.now),
    decision_valid_until: formatInstant(validUntil(agreement, denial === null, issuer.now)),
    operator_sovereign_id: issuer.sovereignId,
    freshness_proof: null,
  };
  return signSingly(decision, keysOf(issuer));
}

/** An authorization never outlives its agreement. */
function validUntil({ agreed_terms }: AgreementRecord, authorized: boolean, now: number): number {
  const end = now + DECISION_VALIDITY;
  return authorized ? Math.min(end, instantOf(agreed_terms.valid_until)) : end;
}

interface Gate {
  readonly name: string;
  /** Verifiers classify a denial by the words of this text. */
  readonly denial: string;
  readonly passed: boolean;
  readonly detail: string;
}

function evaluateGates(agreement: AgreementRecord, request: BoundaryRequest, now: number) {
  const gates = gatesOf(agreement, request, now);
  const failed = gates.findIndex(({ passed }) => !passed);
  const evaluated = failed === -1 ? gates : gates.slice(0, failed + 1);
  const results = evaluated.map(({ name, passed, detail }): GateResult => {
    return { gate_name: name, passed, detail };
  });
  return { results, denial: gates[failed]?.denial ?? null };
}

function gatesOf({ agreed_terms }: AgreementRecord, request: BoundaryRequest, now: number): Gate[] {
  const { capabilities, valid_from, valid_until, freshness_commitment } = agreed_terms;
  const { requested_capability: capability, context } = request;
  const { context_freshness_seq: sequence } = context;
  const agreed = capabilities.includes(capability);
  return [
    {
      name: 'capability_check',
      denial: 'capability out of scope',
      passed: agreed,
      detail: `${JSON.stringify(capability)} is ${agreed ? '' : 'not '}an agreed capability`,
    },
    {
      name: 'validity_window',
      denial: 'outside validity window',
      passed: instantOf(valid_from) <= now && now <= instantOf(valid_until),
      detail: `requested at ${formatInstant(now)}, valid from ${valid_from} until ${valid_until}`,
    },
    {
      name: 'freshness_check',
      denial: 'insufficient freshness',
      passed: sequence >= freshness_commitment,
      detail: `feed sequence ${sequence}, committed to ${freshness_commitment}`,
    },
  ];
}

export const BOUNDARY_REASONS = [
  'missing_signature',
  'decision_expired',
  'invalid_signature',
  'unauthorized_capability_out_of_scope',
  'unauthorized_outside_validity_window',
  'unauthorized_insufficient_freshness',
  'unauthorized_gate_failure',
  'authorized',
] as const;
export type BoundaryReason = (typeof BOUNDARY_REASONS)[number];

export interface BoundaryVerdict {
  readonly accepted: boolean;
  /** False unless the decision is accepted, regardless of its own flag. */
  readonly authorized: boolean;
  readonly reason: BoundaryReason;
}

export function verifyBoundaryDecision(
  decision: BoundaryDecision,
  operatorKeys: readonly string[],
  now: number,
  verify: VerifySignature,
): BoundaryVerdict {
  if (decision.signature === null) return refused('missing_signature');
  if (now > instantOf(decision.decision_valid_until)) return refused('decision_expired');
  if (!isSinglySignedByAny(decision, operatorKeys, verify)) return refused('invalid_signature');
  const { authorized, denial_reason } = decision;
  const reason = authorized ? 'authorized' : denialReason(denial_reason ?? '');
  return { accepted: true, authorized, reason };
}

function refused(reason: BoundaryReason): BoundaryVerdict {
  return { accepted: false, authorized: false, reason };
}

function denialReason(text: string): BoundaryReason {
  if (text.includes('capability')) return 'unauthorized_capability_out_of_scope';
  if (text.includes('validity') || text.includes('window')) {
    return 'unauthorized_outside_validity_window';
  }
  if (text.includes('freshness')) return 'unauthorized_insufficient_freshness';
  return 'unauthorized_gate_failure';
}
