/** An operator's requests about policy [core-4-10]. */

import { PolicyHistory } from '../protocol/answers/recognition.ts';
import { PolicyManifest } from '../protocol/records/policy-manifest.ts';
import { type Calls, posting } from './calls.ts';
import type { CallOptions } from './options.ts';
import type { Page } from './public-trust.ts';

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

export interface OperatorTrust {
  publishPolicy(policy?: PolicyRequest, call?: CallOptions): Promise<PolicyManifest>;
  rollbackPolicy(policyId: string, call?: CallOptions): Promise<PolicyManifest>;
  policyHistory(page?: Page, call?: CallOptions): Promise<PolicyHistory>;
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
  };
}
