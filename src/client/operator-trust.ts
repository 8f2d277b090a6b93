/** An operator's requests about policy and trust between sovereigns [core-4-10] to [core-4-14]. */

import type { JsonObject } from '../base/json/value.ts';
import {
  FeedImported,
  PolicyHistory,
  RecognitionPolicySaved,
} from '../protocol/answers/recognition.ts';
import { PolicyManifest } from '../protocol/records/policy-manifest.ts';
import { type Calls, posting } from './calls.ts';
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

export interface OperatorTrust {
  publishPolicy(policy?: PolicyRequest, call?: CallOptions): Promise<PolicyManifest>;
  rollbackPolicy(policyId: string, call?: CallOptions): Promise<PolicyManifest>;
  policyHistory(page?: Page, call?: CallOptions): Promise<PolicyHistory>;
  setRecognitionPolicy(
    policy: RecognitionPolicyRequest,
    call?: CallOptions,
  ): Promise<RecognitionPolicySaved>;
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
    importFeed: to(FeedImported, '/admin/sovereign-revocation-feeds/import'),
  };
}
