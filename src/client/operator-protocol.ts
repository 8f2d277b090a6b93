/** An operator's requests of the trust protocol [trust-5]; every answer is a signed record. */
import type { JsonObject } from '../base/json/value.ts';
import {
  AgreementRecord,
  CapabilityCounter,
  CapabilityOffer,
} from '../protocol/records/agreement.ts';
import { BoundaryDecision } from '../protocol/records/boundary-decision.ts';
import {
  CapabilityCommitment,
  CapabilityNullifier,
} from '../protocol/records/capability-disclosure.ts';
import { ConsensusProof } from '../protocol/records/consensus-proof.ts';
import { DataAccessIntent, DataLicensePolicy } from '../protocol/records/data-usage.ts';
import { TrustEvidence } from '../protocol/records/trust-evidence.ts';
import { ValidatorVote } from '../protocol/records/validator-vote.ts';
import type { Calls } from './calls.ts';
import type { CallOptions } from './options.ts';

/** Timestamps are ISO 8601; without an offset they are UTC. */
export type RequestedTerms = {
  readonly capabilities: readonly string[];
  readonly scope?: JsonObject;
  readonly valid_from: string;
  readonly valid_until: string;
};

/** `expires_at` is the last moment to accept. */
export type OfferRequest = RequestedTerms & {
  readonly responder_sovereign_id: string;
  readonly expires_at: string;
};

/** Records are sent as they were received, here and below. */
export type CounterRequest = RequestedTerms & { readonly offer: JsonObject };

/** An offer as it stands, or a counter to the offer that was ours. */
export type AcceptRequest =
  | { readonly offer: JsonObject }
  | { readonly counter: JsonObject; readonly original_offer: JsonObject };

export type BoundaryContext = {
  /** Reappears in the decision; new when absent. */
  readonly context_id?: string;
  readonly parent_kind?: string;
  readonly requester_sovereign_id?: string;
  readonly provider_sovereign_id?: string;
  readonly request_parameters?: JsonObject;
  readonly context_freshness_seq?: number;
};

export type BoundaryRequest = {
  readonly agreement: JsonObject;
  readonly requested_capability: string;
  readonly context?: BoundaryContext;
};

/** Without a digest that of the authority's graph is taken. */
export type EvidenceRequest = {
  readonly decision: JsonObject;
  readonly graph_digest?: string;
};

export type CommitRequest = {
  readonly capabilities: readonly string[];
  readonly agreement: JsonObject;
};

export type VoteRequest = {
  readonly justification_proof: JsonObject;
  readonly vote: boolean;
  readonly reason?: string | null;
};

export type ConsensusRequest = {
  readonly justification_proof: JsonObject;
  readonly votes: readonly JsonObject[];
  readonly required_threshold: number;
  readonly validator_sovereign_ids: readonly string[];
};

/** No source is allowed by an empty list; an empty list of access types allows `read`. */
export type LicenseRequest = {
  readonly licensee_sovereign_id: string;
  readonly allowed_source_ids: readonly string[];
  readonly allowed_access_types: readonly string[];
  readonly max_volume_bytes_per_session?: number | null;
  readonly prohibited_classification_tags?: readonly string[];
  readonly valid_from: string;
  readonly valid_until: string;
};

export type DataSource = {
  readonly source_id: string;
  readonly source_type: string;
  readonly owner_sovereign_id: string;
  readonly classification_tags?: readonly string[];
};

/** Without a decision id the authority makes a new one up. */
export type IntentRequest = {
  readonly sources: readonly DataSource[];
  readonly access_types: readonly string[];
  readonly decision_id?: string;
  readonly estimated_volume_bytes?: number | null;
};

export interface OperatorProtocol {
  offerCapabilities(offer: OfferRequest, call?: CallOptions): Promise<CapabilityOffer>;
  counterOffer(counter: CounterRequest, call?: CallOptions): Promise<CapabilityCounter>;
  acceptAgreement(acceptance: AcceptRequest, call?: CallOptions): Promise<AgreementRecord>;
  /** A denial is an answer like any other: read `authorized`. */
  decideBoundary(request: BoundaryRequest, call?: CallOptions): Promise<BoundaryDecision>;
  buildEvidence(request: EvidenceRequest, call?: CallOptions): Promise<TrustEvidence>;
  commitCapabilities(request: CommitRequest, call?: CallOptions): Promise<CapabilityCommitment>;
  /** Uses the proof up: a second request for its id is refused. */
  nullifyProof(proof: JsonObject, call?: CallOptions): Promise<CapabilityNullifier>;
  castVote(vote: VoteRequest, call?: CallOptions): Promise<ValidatorVote>;
  assembleConsensus(request: ConsensusRequest, call?: CallOptions): Promise<ConsensusProof>;
  /** Replaces the policy in force, which the authority forgets when it stops. */
  createLicensePolicy(policy: LicenseRequest, call?: CallOptions): Promise<DataLicensePolicy>;
  declareIntent(intent: IntentRequest, call?: CallOptions): Promise<DataAccessIntent>;
}

export function operatorProtocol({ post }: Pick<Calls, 'post'>): OperatorProtocol {
  return {
    offerCapabilities: (offer, call) =>
      post(CapabilityOffer, '/admin/agreements/offer', offer, call),
    counterOffer: (counter, call) =>
      post(CapabilityCounter, '/admin/agreements/counter', counter, call),
    acceptAgreement: (acceptance, call) =>
      post(AgreementRecord, '/admin/agreements/accept', acceptance, call),
    decideBoundary: (request, call) =>
      post(BoundaryDecision, '/admin/boundary/decide', request, call),
    buildEvidence: (request, call) => post(TrustEvidence, '/admin/trust-evidence', request, call),
    commitCapabilities: (request, call) =>
      post(CapabilityCommitment, '/admin/disclosure/commit', request, call),
    nullifyProof: (proof, call) =>
      post(CapabilityNullifier, '/admin/disclosure/nullifier', { proof }, call),
    castVote: (vote, call) => post(ValidatorVote, '/admin/consensus/vote', vote, call),
    assembleConsensus: (request, call) =>
      post(ConsensusProof, '/admin/consensus/proof', request, call),
    createLicensePolicy: (policy, call) =>
      post(DataLicensePolicy, '/admin/data-usage/policy', policy, call),
    declareIntent: (intent, call) =>
      post(DataAccessIntent, '/admin/data-usage/intent', intent, call),
  };
}
