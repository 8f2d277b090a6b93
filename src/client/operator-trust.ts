/** An operator's requests about policy and trust between sovereigns [core-4-10] to [core-4-14]. */
import type { JsonObject } from '../json/value.ts';
import type { MembershipAttestation } from '../records/membership-attestation.ts';
import type { PolicyManifest } from '../records/policy-manifest.ts';
import type { RecognitionTreaty, TreatyScope } from '../records/recognition-treaty.ts';
import type { PublicKeys } from './public-trust.ts';
import type {
  AttestationRevocation,
  FeedImported,
  PolicyHistory,
  RecognitionPolicySaved,
  TreatyRevocation,
} from './trust-answers.ts';

/** The authority stamps and signs the manifest; absent members take its defaults. */
export type PolicyRequest = {
  readonly policy_id?: string;
  readonly min_client_version?: string;
  readonly allowed_ports?: readonly number[];
  readonly allowed_services?: readonly string[];
  readonly routing?: {
    readonly preferred_transports?: readonly string[];
    readonly max_hops?: number;
  };
};

/** Absent members take the authority's defaults: 168 hours, its own name as issuer. */
export type AttestationRequest = {
  readonly subject_id: string;
  readonly roles: readonly string[];
  readonly validity_hours?: number;
  readonly subject_public_key?: string;
  readonly claims?: JsonObject;
  readonly issuer_sovereign_id?: string;
};

export type TreatyRequest = {
  readonly subject_sovereign_id: string;
  readonly subject_public_keys: readonly string[];
  readonly scope?: Partial<TreatyScope>;
  readonly validity_hours?: number;
  readonly metadata?: JsonObject;
  readonly issuer_sovereign_id?: string;
};

export type RecognitionPolicyRequest = {
  readonly recognition_policy: JsonObject;
  readonly policy_id?: string;
};

/** Without keys those of the active treaties with the feed's issuer decide. */
export type FeedImportRequest = {
  readonly feed: JsonObject;
  readonly issuer_public_keys?: PublicKeys;
  readonly expected_issuer_sovereign_id?: string;
};

export type RevokeReason = { readonly reason?: string };

export interface OperatorTrust {
  publishPolicy(policy?: PolicyRequest): Promise<PolicyManifest>;
  rollbackPolicy(policyId: string): Promise<PolicyManifest>;
  policyHistory(): Promise<PolicyHistory>;
  issueAttestation(attestation: AttestationRequest): Promise<MembershipAttestation>;
  revokeAttestation(id: string, revocation?: RevokeReason): Promise<AttestationRevocation>;
  setRecognitionPolicy(policy: RecognitionPolicyRequest): Promise<RecognitionPolicySaved>;
  issueTreaty(treaty: TreatyRequest): Promise<RecognitionTreaty>;
  /** A reason `renewed_by:<id>` or `replaced_by:<id>` names the successor. */
  revokeTreaty(id: string, revocation?: RevokeReason): Promise<TreatyRevocation>;
  importFeed(request: FeedImportRequest): Promise<FeedImported>;
}

/** Sends signed requests; paths are percent-encoded. */
interface SignedSender {
  get<T>(path: string): Promise<T>;
  post<T>(path: string, body: JsonObject): Promise<T>;
}

export function operatorTrust({ get, post }: SignedSender): OperatorTrust {
  return {
    publishPolicy: (policy = {}) => post('/admin/policy', policy),
    rollbackPolicy: (policyId) => post('/admin/policy/rollback', { policy_id: policyId }),
    policyHistory: () => get('/admin/policy/history'),
    issueAttestation: (attestation) => post('/admin/attestations', attestation),
    revokeAttestation: (id, revocation = {}) =>
      post(`/admin/attestations/${encodeURIComponent(id)}/revoke`, revocation),
    setRecognitionPolicy: (policy) => post('/admin/recognition-policy', policy),
    issueTreaty: (treaty) => post('/admin/recognition-treaties', treaty),
    revokeTreaty: (id, revocation = {}) =>
      post(`/admin/recognition-treaties/${encodeURIComponent(id)}/revoke`, revocation),
    importFeed: (request) => post('/admin/sovereign-revocation-feeds/import', request),
  };
}
