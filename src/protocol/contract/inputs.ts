/** The inputs of calls, as plain, serializable values that the edge has already checked. */
import type { AgentDescriptor } from '../records/agent-descriptor.ts';
import type { ChainRefusal } from '../records/authority-chain.ts';
import type { AuthoritySuccession } from '../records/authority-succession.ts';
import type { NodeClaim } from './claims.ts';

export interface RegisterAgent {
  readonly descriptor: AgentDescriptor;
  /** A signature of the descriptor verifies under the key inside it. */
  readonly signatureValid: boolean;
  /** The proof header, if it was also sent. */
  readonly node: NodeClaim | null;
  readonly remoteAddr: string;
}

export interface RemoveAgent {
  readonly nodePublicKey: string;
  /** The proof header, which replaces the envelope. */
  readonly node: NodeClaim | null;
  /** The signed envelope; null if the proof header was sent. */
  readonly envelope: {
    readonly signature: string;
    /** Milliseconds since the epoch. */
    readonly signedAt: number;
    readonly valid: boolean;
  } | null;
  readonly remoteAddr: string;
}

/** What the edge found by following a chain from the keys that a treaty names. */
export interface FollowedChain {
  /** Why the edge could not follow the chain from what the treaty names; null if it could. */
  readonly refusal: ChainRefusal | null;
  /** The statements in force, with those that the treaty has followed; empty if the chain is refused. */
  readonly inForce: readonly AuthoritySuccession[];
  /** When the next statement is to come into force; null if there is none. */
  readonly nextAt: string | null;
}

/** What the edge found by verifying a feed. */
export interface VerifiedFeed {
  /** Null for those of active treaties. */
  readonly issuer_public_keys: readonly string[] | null;
  readonly feedId: string;
  readonly issuer: string;
  readonly sequence: number | bigint;
  readonly revokedCount: number;
  /** JSON texts, each a list of `[revoked id, reason or null]` pairs; sorted by id. */
  readonly rows: readonly string[];
  readonly isSigned: boolean;
  /** A key under which a signature of the feed verifies; null if the edge found none. */
  readonly verifiedUnder: string | null;
}

/** The authority of a sovereign with which treaties in force have an endpoint. */
export interface PartnerAddress {
  readonly subject: string;
  readonly endpoint: string;
  readonly treatyIds: readonly string[];
}

/** What the authority is given was fetched from this endpoint. */
export interface Fetched {
  readonly fetched_from: string;
}

export interface ReadEvents {
  /** The number of the audit entry after which the events begin; 0 for all events. */
  readonly after: number;
  readonly most: number;
  /** Whether to wait for the next event if there is none. */
  readonly waits: boolean;
}

/** The currently configured webhooks, by id. */
export interface OpenWebhooks {
  readonly ids: readonly string[];
  /** The index of the event after which new webhooks begin; null for the end of the log. */
  readonly after: number | null;
}

/** The index of the last event delivered to each webhook, by webhook id. */
export type WebhookCursors = { readonly [id: string]: number };

/** Requests for one page of a long list. */

/** A row's position in its list. */
export interface ListPlace {
  /** Milliseconds since the epoch by which the list is sorted. */
  readonly at: number;
  /** Sorts rows of the same instant. */
  readonly id: string;
}

export interface PageRequest {
  /** The position after which the page begins; null for the first page. */
  readonly after: ListPlace | null;
  /** The most rows to return; a page may have fewer, or none, and still not be the last. */
  readonly limit: number;
}
