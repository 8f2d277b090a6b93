/** Unauthenticated requests of the trust protocol: verifying, proving and reading [trust-6]. */

import type { JsonObject } from '../base/json/value.ts';
import {
  AgreementVerdict,
  BoundaryVerdict,
  ConsensusVerdict,
  DisclosureVerdict,
  EvidenceVerdict,
  IntentVerdict,
} from '../protocol/answers/verdicts.ts';
import { CapabilityMembershipProof } from '../protocol/records/capability-disclosure.ts';
import { DataLicensePolicy } from '../protocol/records/data-usage.ts';
import { AuthorityError } from './authority-error.ts';
import { type Calls, posting } from './calls.ts';
import type { CallOptions } from './options.ts';

/** Base64 keys; defaults to the key of the requested authority. An empty list accepts nothing. */
type Keys = readonly string[];

export type VerifyAgreementRequest = {
  readonly agreement: JsonObject;
  readonly offerer_public_keys?: Keys;
  readonly responder_public_keys?: Keys;
};

export type VerifyDecisionRequest = {
  readonly decision: JsonObject;
  readonly operator_public_keys?: Keys;
};

export type VerifyEvidenceRequest = {
  readonly evidence: JsonObject;
  readonly issuer_public_keys?: Keys;
  readonly expected_graph_digest?: string;
};

/** `capabilities` is the complete list that the commitment covers. */
export type ProveRequest = {
  readonly capability: string;
  readonly capabilities: readonly string[];
  readonly commitment: JsonObject;
  readonly prover_sovereign_id: string;
};

export type VerifyMembershipRequest = {
  readonly proof: JsonObject;
  readonly commitment: JsonObject;
  readonly issuer_public_keys?: Keys;
};

/** Keys by the sovereign id of their validator. There is no default, because validators are other sovereigns. */
export type VerifyConsensusRequest = {
  readonly proof: JsonObject;
  readonly validator_public_keys: { readonly [validator: string]: string };
  readonly assembler_public_keys?: Keys;
};

export type VerifyIntentRequest = {
  readonly intent: JsonObject;
  readonly policy: JsonObject;
  readonly agent_public_keys?: Keys;
};

export interface PublicProtocol {
  verifyAgreement(request: VerifyAgreementRequest, call?: CallOptions): Promise<AgreementVerdict>;
  verifyDecision(request: VerifyDecisionRequest, call?: CallOptions): Promise<BoundaryVerdict>;
  verifyEvidence(request: VerifyEvidenceRequest, call?: CallOptions): Promise<EvidenceVerdict>;
  proveMembership(request: ProveRequest, call?: CallOptions): Promise<CapabilityMembershipProof>;
  verifyMembership(
    request: VerifyMembershipRequest,
    call?: CallOptions,
  ): Promise<DisclosureVerdict>;
  verifyConsensus(request: VerifyConsensusRequest, call?: CallOptions): Promise<ConsensusVerdict>;
  verifyIntent(request: VerifyIntentRequest, call?: CallOptions): Promise<IntentVerdict>;
  /** The policy in force; null when there is none. */
  licensePolicy(call?: CallOptions): Promise<DataLicensePolicy | null>;
}

export function publicProtocol(calls: Calls): PublicProtocol {
  const to = posting(calls);
  return {
    verifyAgreement: to(AgreementVerdict, '/agreements/verify'),
    verifyDecision: to(BoundaryVerdict, '/boundary/verify'),
    verifyEvidence: to(EvidenceVerdict, '/trust-evidence/verify'),
    proveMembership: to(CapabilityMembershipProof, '/disclosure/prove'),
    verifyMembership: to(DisclosureVerdict, '/disclosure/verify'),
    verifyConsensus: to(ConsensusVerdict, '/consensus/verify'),
    verifyIntent: to(IntentVerdict, '/data-usage/verify'),
    licensePolicy: (call) =>
      calls.get(DataLicensePolicy, '/data-usage/policy', {}, call).catch(nullWithoutPolicy),
  };
}

function nullWithoutPolicy(error: unknown): null {
  if (error instanceof AuthorityError && error.code === 'no_policy') return null;
  throw error;
}
