/** An operator's requests about policy and trust between sovereigns [core-4-10] to [core-4-14]. */

import type { JsonObject } from '../base/json/value.ts';
import {
  FeedImported,
  PolicyHistory,
  RecognitionPolicySaved,
  TreatyRevocation,
} from '../protocol/answers/recognition.ts';
import { PolicyManifest } from '../protocol/records/policy-manifest.ts';
import { RecognitionTreaty, type TreatyScope } from '../protocol/records/recognition-treaty.ts';
import { type Calls, pathOf, posting } from './calls.ts';
import type { CallOptions } from './options.ts';
import type { Page, PublicKeys } from './public-trust.ts';

/** The authority timestamps and signs the manifest; absent members get its defaults. */
export type PolicyRequest = {
  readonly policy_id?: string | undefined;
  readonly min_client_version?: string | undefined;
  readonly allowed_ports?: readonly number[] | undefined;
  readonly allowed_services?: readonly string[] | undefined;
  readonly routing?: {
    readonly preferred_transports?: readonly string[];
    readonly max_hops?: number;
  };
};

export type TreatyRequest = {
  readonly subject_sovereign_id: string;
  readonly subject_public_keys: readonly string[];
  readonly scope?: Partial<TreatyScope> | undefined;
  readonly validity_hours?: number | undefined;
  readonly metadata?: JsonObject | undefined;
  readonly issuer_sovereign_id?: string | undefined;
};

export type RecognitionPolicyRequest = {
  readonly recognition_policy: JsonObject;
  readonly policy_id?: string;
};

/** The keys default to those of the active treaties with the feed's issuer. */
export type FeedImportRequest = {
  readonly feed: JsonObject;
  readonly issuer_public_keys?: PublicKeys | undefined;
  readonly expected_issuer_sovereign_id?: string | undefined;
};

/** The other sovereign's document of authority keys; the root key defaults to the one that the treaty names. */
export type FollowRequest = {
  readonly authority_keys: JsonObject;
  readonly root_public_key?: string | undefined;
};

export type RevokeReason = { readonly reason?: string | undefined };

export interface OperatorTrust {
  publishPolicy(policy?: PolicyRequest, call?: CallOptions): Promise<PolicyManifest>;
  rollbackPolicy(policyId: string, call?: CallOptions): Promise<PolicyManifest>;
  policyHistory(page?: Page, call?: CallOptions): Promise<PolicyHistory>;
  setRecognitionPolicy(
    policy: RecognitionPolicyRequest,
    call?: CallOptions,
  ): Promise<RecognitionPolicySaved>;
  issueTreaty(treaty: TreatyRequest, call?: CallOptions): Promise<RecognitionTreaty>;
  /** A reason `renewed_by:<id>` or `replaced_by:<id>` names the successor. */
  revokeTreaty(
    id: string,
    revocation?: RevokeReason,
    call?: CallOptions,
  ): Promise<TreatyRevocation>;
  /** Replaces a treaty after its subject has replaced its authority key; returns the successor. */
  followTreaty(id: string, chain: FollowRequest, call?: CallOptions): Promise<RecognitionTreaty>;
  importFeed(request: FeedImportRequest, call?: CallOptions): Promise<FeedImported>;
}

/** Sends signed requests. */
export function operatorTrust(calls: Calls): OperatorTrust {
  const { get, post } = calls;
  const to = posting(calls);
  return {
    publishPolicy: to(PolicyManifest, '/admin/policy'),
    rollbackPolicy: (policyId, call) =>
      post(PolicyManifest, '/admin/policy/rollback', { policy_id: policyId }, call),
    policyHistory: (page, call) => get(PolicyHistory, '/admin/policy/history', page, call),
    setRecognitionPolicy: to(RecognitionPolicySaved, '/admin/recognition-policy'),
    issueTreaty: to(RecognitionTreaty, '/admin/recognition-treaties'),
    revokeTreaty: (id, revocation = {}, call) =>
      post(TreatyRevocation, pathOf`/admin/recognition-treaties/${id}/revoke`, revocation, call),
    followTreaty: (id, chain, call) =>
      post(RecognitionTreaty, pathOf`/admin/recognition-treaties/${id}/follow`, chain, call),
    importFeed: to(FeedImported, '/admin/sovereign-revocation-feeds/import'),
  };
}
