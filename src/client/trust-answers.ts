/** What the sovereign-trust routes answer [core-4-6], [core-4-10] to [core-4-15] and [core-6]. */
import type { AgentDescriptor } from '../records/agent-descriptor.ts';
import type { PolicyManifest } from '../records/policy-manifest.ts';
import type { AttestationRow } from '../views/rows/attestation.ts';
import type { TreatyRow } from '../views/rows/treaty.ts';

export type { AttestationRow } from '../views/rows/attestation.ts';
export type {
  Atlas,
  Connectome,
  EdgeRow as RecognitionEdge,
  ImportedRevocation,
  RecognitionGraph,
  RevokedTreaty,
  TrustPath,
} from '../views/rows/graph.ts';
export type { Lifecycle as TreatyLifecycle, TreatyRow } from '../views/rows/treaty.ts';

export type PolicyVersion = {
  readonly policy_id: string;
  readonly active: boolean;
  readonly created_at: string;
  readonly policy: PolicyManifest;
};

/** Newest first. */
export type PolicyHistory = { readonly versions: readonly PolicyVersion[] };

/** Without a capability the authority answers the count alone. */
export type AgentList = {
  readonly count: number;
  readonly capability: string | null;
  readonly agents?: readonly AgentDescriptor[];
};

export type AttestationList = {
  readonly count: number;
  readonly attestations: readonly AttestationRow[];
};

export type AttestationRevocation = {
  readonly attestation_id: string;
  readonly status: string;
  readonly already_revoked?: boolean;
};

export type TreatyList = {
  readonly count: number;
  readonly recognition_treaties: readonly TreatyRow[];
};

export type TreatyRevocation = { readonly treaty_id: string; readonly status: string };

export type RecognitionPolicySaved = {
  readonly policy_id: string;
  readonly local_sovereign_id: string;
  readonly active: boolean;
};

export type FeedImported = {
  readonly accepted: boolean;
  readonly reason: string;
  readonly feed_id: string;
  readonly issuer_sovereign_id: string;
  readonly sequence: number | bigint;
  readonly revoked_count: number;
};

/** A refusal is an answer like any other: `reason` says why, `accepted` otherwise. */
export type Verdict = { readonly accepted: boolean; readonly reason: string };

export type AttestationVerdict = Verdict & {
  readonly issuer_sovereign_id: string;
  readonly attestation_id: string;
};

export type TreatyVerdict = Verdict & {
  readonly treaty_id: string;
  readonly issuer_sovereign_id: string;
  readonly subject_sovereign_id: string;
};

/** Issuer and subject are those of the treaty. */
export type TreatyAttestationVerdict = TreatyVerdict & { readonly attestation_id: string };
