/**
 * The store port: everything the authority needs from durable state. Any implementation passes the one
 * conformance suite (test/store/conformance.ts). Revisions are gapless and in commit order. What may have to
 * wait for a disk or another machine returns a promise.
 */
import type { JsonObject } from '../json/value.ts';

export interface Snapshot {
  readonly value: string;
  readonly context: object;
}

export interface StoredSubject {
  readonly kind: string;
  readonly id: string;
  readonly version: number;
  readonly snapshot: Snapshot;
}

export interface SubjectWrite extends StoredSubject {
  /** The version this write replaces; 0 says the subject must not exist yet. */
  readonly replaces: number;
}

/** Takes a subject out of the store, and the liveness stored under its id. */
export interface SubjectRemoval {
  readonly kind: string;
  readonly id: string;
  /** The version that is stored. */
  readonly replaces: number;
}

export interface SpentNonce {
  /** Digest of scope and nonce; the nonce itself is not kept. */
  readonly digest: string;
  /** Milliseconds since the epoch from which the nonce may be forgotten. */
  readonly forgetAt: number;
}

/** Instants after the first up to the second, in milliseconds since the epoch. */
export type TimeRange = readonly [after: number, until: number];

export interface AuditEntry {
  readonly event_id: string;
  readonly event_type: string;
  readonly details: JsonObject;
  readonly created_at: string;
  readonly prev_hash: string;
  readonly hash: string;
}

/** An entry to be stored, with the canonical text that its hash was taken over. */
export interface SealedEntry {
  readonly entry: AuditEntry;
  readonly text: string;
}

/** All that one command changes; it is stored whole or not at all. */
export interface Unit {
  /** A unit names a subject once: it writes it or removes it. */
  readonly subjects: readonly SubjectWrite[];
  readonly removals: readonly SubjectRemoval[];
  readonly nonces: readonly SpentNonce[];
  readonly audit: readonly SealedEntry[];
}

/** Liveness of one certificate: flushed in batches, never part of a unit. Instants in milliseconds. */
export interface StoredLiveness {
  readonly id: string;
  /** When the last heartbeat was accepted. */
  readonly lastSeen: number;
  readonly status: string;
  readonly remoteAddr: string;
  /** The newest timestamp the node signed: after a restart nothing older is accepted from it. */
  readonly newestSignedAt: number;
}

/** How the one who held the state before has ended. */
export type PreviousOwner =
  /** The state is new. */
  | 'none'
  | 'closed'
  /** It never closed the store: up to one flush of liveness may be missing. */
  | 'lost';

/**
 * Everything at one revision. Rows come in batches, because a step of an asynchronous iteration costs more
 * than a row. Texts are in the order of their UTF-8 bytes, whatever order a database would give them.
 */
export interface StoreContents {
  readonly revision: number;
  /** By kind, and the subjects of one kind by id. */
  readonly subjects: AsyncIterable<readonly StoredSubject[]>;
  readonly nonces: AsyncIterable<readonly SpentNonce[]>;
  /** What came with the last call of `forgetNonces` that dropped any. */
  readonly forgottenTimes: readonly TimeRange[];
  /** By id. */
  readonly liveness: AsyncIterable<readonly StoredLiveness[]>;
  /** The last audit entries, oldest first. */
  readonly recentAudit: readonly AuditEntry[];
  /** Hash of the last audit entry; 64 zeros when there is none. */
  readonly auditHead: string;
  readonly previousOwner: PreviousOwner;
  /** Gives back what loading took. Call when all is read, and before anything is committed. */
  dispose(): Promise<void>;
}

export interface Store {
  /** Rejects, as does the iteration of the rows, when what is stored is damaged. */
  load(): Promise<StoreContents>;
  /** Resolves to the unit's revision once it is on disk; rejects, storing nothing of it, otherwise. */
  commit(unit: Unit): Promise<number>;
  touchMany(rows: readonly StoredLiveness[]): Promise<void>;
  /** Drops nonces whose time has passed, and keeps instead when the requests they came with were signed. */
  forgetNonces(now: number, forgottenTimes: readonly TimeRange[]): Promise<void>;
  /** Null when the store can be written and read, as far as is known now; else what is wrong. */
  health(): string | null;
  /** False when somebody else has taken the state over: nothing can be committed any more. */
  isOwner(): boolean;
  close(): Promise<void>;
  /** Lets go of the state as an owner that died would: whoever opens it next finds it `lost`. */
  abandon(): Promise<void>;
}

/** A write or a removal named a version that is no longer the stored one. */
export class StoreConflict extends Error {}

export const GENESIS_HASH = '0'.repeat(64);
