/** What the sovereign-trust routes answer (wire rules 4.6, 4.10-4.15 and 6). */
import type { AgentDescriptor } from '../records/agent-descriptor.ts';
import type { MembershipAttestation } from '../records/membership-attestation.ts';
import type { PolicyManifest } from '../records/policy-manifest.ts';
import type { RecognitionTreaty } from '../records/recognition-treaty.ts';

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

/** `status` is the kept one, `active` or `revoked`; time does not change it. */
export type AttestationRow = {
  readonly attestation: MembershipAttestation;
  readonly status: string;
  readonly revoked_at: string | null;
  readonly revocation_reason: string | null;
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

export type TreatyLifecycle = {
  readonly state: string;
  readonly expiry_risk: string;
  readonly seconds_until_expiry: number | null;
  readonly expires_at: string;
  readonly revoked_at: string | null;
  readonly revocation_reason: string | null;
  readonly replacement_treaty_id: string | null;
};

export type TreatyRow = {
  readonly treaty: RecognitionTreaty;
  readonly status: string;
  readonly revoked_at: string | null;
  readonly revocation_reason: string | null;
  readonly lifecycle: TreatyLifecycle;
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

export type RecognitionEdge = {
  readonly from: string;
  readonly to: string;
  readonly treaty_id: string;
  readonly status: string;
  readonly lifecycle_state: string;
  readonly expiry_risk: string;
  readonly valid_from: string;
  readonly expires_at: string;
};

export type RevokedTreaty = {
  readonly type: 'recognition_treaty';
  readonly id: string;
  readonly lifecycle_state: string;
  readonly reason: string | null;
  readonly revoked_at: string | null;
};

export type ImportedRevocation = {
  readonly type: 'membership_attestation';
  readonly id: string;
  readonly issuer_sovereign_id: string;
  readonly feed_id: string;
  readonly sequence: number | bigint;
  readonly reason: string | null;
  readonly revoked_at: string;
};

export type RecognitionGraph = {
  readonly sovereigns: readonly { readonly sovereign_id: string }[];
  readonly recognition_edges: readonly RecognitionEdge[];
  readonly active_treaties: readonly RecognitionTreaty[];
  readonly revoked_trust_material: readonly (RevokedTreaty | ImportedRevocation)[];
};

export type Connectome = RecognitionGraph & {
  readonly summary: {
    readonly sovereign_count: number;
    readonly recognition_edge_count: number;
    readonly active_edge_count: number;
    readonly revoked_edge_count: number;
    readonly revoked_trust_material_count: number;
    readonly imported_revocation_count: number;
  };
  readonly revocation_blast_radius: readonly (ImportedRevocation & {
    readonly affected_accepting_sovereigns: readonly string[];
  })[];
};

export type TrustPath = {
  readonly from: string;
  readonly to: string;
  readonly trusted: boolean;
  readonly reason: string;
  readonly path: readonly RecognitionEdge[];
  readonly hop_count: number;
};

export type Atlas = Pick<RecognitionGraph, 'sovereigns' | 'recognition_edges'> & {
  readonly active_treaty_count: number;
  readonly revoked_trust_material_count: number;
  /** Hex SHA-256 over the canonical text of the recognition graph. */
  readonly graph_digest: string;
};
