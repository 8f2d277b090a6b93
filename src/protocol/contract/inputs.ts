/** The inputs of calls: plain, serializable values, already checked by the edge. */

import type { JsonObject } from '../../base/json/value.ts';
import type { AgentDescriptor } from '../records/agent-descriptor.ts';
import type {
  AgreementRecord,
  CapabilityCounter,
  CapabilityOffer,
  RequestedTerms,
} from '../records/agreement.ts';
import type { BoundaryRequest } from '../records/boundary-decision.ts';
import type { Ballots } from '../records/consensus-proof.ts';
import type { JustificationProof } from '../records/justification-proof.ts';
import type { RecognitionPolicy } from '../records/recognition-policy.ts';
import type { TreatyScope } from '../records/recognition-treaty.ts';
import type { RevocationReason } from '../records/revocation-list.ts';
import type { TrustDecision } from '../records/trust-evidence.ts';
import type { CertificateStatus } from '../rows/certificate.ts';
import type { InviteStatus } from '../rows/invite.ts';
import type { NodeClaim, Tier } from './claims.ts';

export interface Join {
  readonly node: NodeClaim;
  readonly inviteToken: string;
  readonly validityHours: number;
}

export interface Heartbeat {
  readonly node: NodeClaim;
  readonly certId: string;
  readonly status: string;
  /** Whether the answer is to say what the node should know. */
  readonly wantsBulletin: boolean;
}

export interface Renew {
  readonly node: NodeClaim;
  readonly certId: string;
  readonly validityHours: number;
  /** Roles the node claims; null when it claims none. */
  readonly roles: readonly string[] | 'malformed' | null;
}

export interface RegisterAgent {
  readonly descriptor: AgentDescriptor;
  /** A signature of the descriptor verifies under the key inside it. */
  readonly signatureValid: boolean;
  /** The proof header, if it was sent in addition. */
  readonly node: NodeClaim | null;
  readonly remoteAddr: string;
}

export interface RemoveAgent {
  readonly nodePublicKey: string;
  /** The proof header, which replaces the envelope. */
  readonly node: NodeClaim | null;
  /** The signed envelope; null when the proof header was sent. */
  readonly envelope: {
    readonly signature: string;
    /** Milliseconds since the epoch. */
    readonly signedAt: number;
    readonly valid: boolean;
  } | null;
  readonly remoteAddr: string;
}

export interface InviteTerms {
  readonly roles: readonly string[];
  readonly maxValidityHours: number;
  readonly tokenExpiryHours: number;
  readonly recipient: string | null;
  /** The number of tokens; null for one, with the short form of the answer. */
  readonly count: number | null;
  /** The batch that they join, or null. */
  readonly batch: string | null;
}

/** Null members filter nothing. */
export interface InviteFilter {
  readonly status: InviteStatus | null;
  readonly batch: string | null;
}

export interface WithdrawInvite {
  readonly fingerprint: string;
}

export interface WithdrawInviteBatch {
  readonly batch: string;
}

export interface RevokeCertificate {
  /** One certificate, or all of a node key. */
  readonly target: { readonly certId: string } | { readonly nodePublicKey: string };
  readonly reason: RevocationReason;
}

/** Null members filter nothing. */
export interface CertificateFilter {
  readonly status: CertificateStatus | null;
  readonly role: string | null;
  /** Milliseconds since the epoch. */
  readonly expiresBefore: number | null;
  /** A node's public key. */
  readonly key: string | null;
}

export interface AddOperatorKey {
  readonly keyId: string;
  /** Base64. */
  readonly publicKey: string;
  readonly tier: Tier;
}

export interface SetOperatorKeyTier {
  readonly keyId: string;
  readonly tier: Tier;
}

export interface RevokeOperatorKey {
  readonly keyId: string;
  readonly reason: string;
  /** Refuse it if it would leave no privileged key. */
  readonly unlessLastPrivileged: boolean;
}

/** Members of a manifest that an operator chooses; the others are stamped. */
export interface PolicyTerms {
  /** Null for a new id. */
  readonly policyId: string | null;
  readonly content: { readonly [member: string]: unknown };
}

export interface RollBackPolicy {
  readonly policyId: string;
}

export interface AttestationTerms {
  readonly subjectId: string;
  readonly roles: readonly string[];
  readonly validityHours: number;
  readonly subjectPublicKey: string | null;
  readonly claims: JsonObject;
  /** Null for this network's own name. */
  readonly issuer: string | null;
}

export interface RevokeAttestation {
  readonly attestationId: string;
  readonly reason: string;
}

export interface AttestationFilter {
  readonly issuer: string | null;
  readonly subject: string | null;
  readonly status: string | null;
}

export interface TreatyTerms {
  readonly subject: string;
  readonly subjectKeys: readonly string[];
  readonly scope: TreatyScope;
  readonly validityHours: number;
  readonly metadata: JsonObject;
  /** Null for this network's own name. */
  readonly issuer: string | null;
}

export interface RevokeTreaty {
  readonly treatyId: string;
  readonly reason: string;
}

export interface TreatyFilter {
  readonly issuer: string | null;
  readonly subject: string | null;
  readonly status: string | null;
}

export interface SetRecognitionPolicy {
  readonly policy: RecognitionPolicy;
  /** Null for the default id. */
  readonly policyId: string | null;
}

export interface ImportFeed {
  readonly feedId: string;
  readonly issuer: string;
  readonly sequence: number | bigint;
  readonly revokedCount: number;
  /** JSON texts, each a list of `[revoked id, reason or null]` pairs; sorted by id. */
  readonly rows: readonly string[];
  readonly isSigned: boolean;
  /** A key under which a signature of the feed verifies; null when the edge found none. */
  readonly verifiedUnder: string | null;
  /** Candidate keys as given; null takes those of active treaties with the issuer. */
  readonly issuerKeys: readonly string[] | null;
  readonly expectedIssuer: string | null;
}

export interface RevocationQuestion {
  readonly attestation: { readonly id: string; readonly issuer: string } | null;
  readonly treatyId: string | null;
}

/** The only state that a public verification can read. */
export interface RevocationKnowledge {
  readonly attestation_revoked_here: boolean;
  readonly attestation_revoked_by_feed: boolean;
  readonly treaty_revoked: boolean;
}

export interface CounterOffer {
  readonly offer: CapabilityOffer;
  readonly terms: RequestedTerms;
}

/** Without a counter, the offer itself is accepted. */
export interface AcceptAgreement {
  readonly offer: CapabilityOffer;
  readonly counter: CapabilityCounter | null;
}

export interface DecideBoundary {
  readonly agreement: AgreementRecord;
  readonly request: BoundaryRequest;
}

export interface BuildEvidence {
  readonly decision: TrustDecision;
  /** Null for that of our graph. */
  readonly graphDigest: string | null;
}

export interface CommitCapabilities {
  readonly agreement: AgreementRecord;
  readonly capabilities: readonly string[];
}

export interface CastVote {
  readonly justification: JustificationProof;
  readonly vote: boolean;
  readonly reason: string | null;
}

export interface AssembleConsensus {
  readonly justification: JustificationProof;
  readonly ballots: Ballots;
}

/** The most treaties that one question leaves out. */
export const MAX_LEFT_OUT = 16;

/** Whether one sovereign trusts another, beyond how it is now. */
export interface TrustQuestion {
  readonly from: string;
  readonly to: string;
  /** Milliseconds since the epoch; null for now. */
  readonly asOf: number | null;
  /** Ids of treaties that are left out. */
  readonly without: readonly string[];
  readonly explain: boolean;
}

export interface OpenEvents {
  /** The number of the audit entry after which the events begin; 0 for all of them. */
  readonly after: number;
}

export interface ReadEvents extends OpenEvents {
  readonly most: number;
  /** Whether the answer waits for the next event when there is none. */
  readonly waits: boolean;
}

/** The webhooks that are configured now, by their ids. */
export interface OpenWebhooks {
  readonly ids: readonly string[];
  /** The index of the event after which new ones begin; null for the end of the log. */
  readonly after: number | null;
}

/** The index of the last event that each webhook took, by its id. */
export type WebhookCursors = { readonly [id: string]: number };
