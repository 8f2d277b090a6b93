/** What anyone may have verified, proved and read of the trust protocol [trust-6]. */
import type { JsonObject } from '../json/value.ts';
import { jsonText } from '../json/write.ts';
import type { CapabilityMembershipProof } from '../records/capability-disclosure.ts';
import type { DataLicensePolicy } from '../records/data-usage.ts';
import { AuthorityError } from './authority-error.ts';
import { send } from './http.ts';
import type { ServerOptions } from './options.ts';
import type {
  AgreementVerdict,
  BoundaryVerdict,
  ConsensusVerdict,
  DisclosureVerdict,
  EvidenceVerdict,
  IntentVerdict,
} from './protocol-answers.ts';

/** Base64 keys: left out, the key of the authority that is asked; empty accepts nothing. */
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

/** `capabilities` is the whole list that was committed to. */
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

/** Keys by the sovereign id of their validator: there is no default, since validators are others. */
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
  verifyAgreement(request: VerifyAgreementRequest): Promise<AgreementVerdict>;
  verifyDecision(request: VerifyDecisionRequest): Promise<BoundaryVerdict>;
  verifyEvidence(request: VerifyEvidenceRequest): Promise<EvidenceVerdict>;
  proveMembership(request: ProveRequest): Promise<CapabilityMembershipProof>;
  verifyMembership(request: VerifyMembershipRequest): Promise<DisclosureVerdict>;
  verifyConsensus(request: VerifyConsensusRequest): Promise<ConsensusVerdict>;
  verifyIntent(request: VerifyIntentRequest): Promise<IntentVerdict>;
  /** The policy in force; null when there is none. */
  licensePolicy(): Promise<DataLicensePolicy | null>;
}

export function publicProtocol(server: ServerOptions): PublicProtocol {
  function post<T>(path: string, body: JsonObject): Promise<T> {
    return send<T>(server, { method: 'POST', path, body: jsonText(body) });
  }
  return {
    verifyAgreement: (request) => post('/agreements/verify', request),
    verifyDecision: (request) => post('/boundary/verify', request),
    verifyEvidence: (request) => post('/trust-evidence/verify', request),
    proveMembership: (request) => post('/disclosure/prove', request),
    verifyMembership: (request) => post('/disclosure/verify', request),
    verifyConsensus: (request) => post('/consensus/verify', request),
    verifyIntent: (request) => post('/data-usage/verify', request),
    licensePolicy: () =>
      send<DataLicensePolicy>(server, { method: 'GET', path: '/data-usage/policy' }).catch(
        nullWithoutPolicy,
      ),
  };
}

function nullWithoutPolicy(error: unknown): null {
  if (error instanceof AuthorityError && error.code === 'no_policy') return null;
  throw error;
}
