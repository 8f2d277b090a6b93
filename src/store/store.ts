/**
 * The store port: everything the authority needs from durable state. Any implementation passes the one
 * conformance suite (test/store/conformance.ts). Revisions are gapless and in commit order.
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

export interface StoreContents {
  readonly revision: number;
  /** By kind, and the subjects of one kind in the order of their ids. */
  readonly subjects: Iterable<StoredSubject>;
  readonly nonces: Iterable<SpentNonce>;
  /** In the order of the ids. */
  readonly liveness: Iterable<StoredLiveness>;
  /** The last audit entries, oldest first. */
  readonly recentAudit: readonly AuditEntry[];
  /** Hash of the last audit entry; 64 zeros when there is none. */
  readonly auditHead: string;
  /** False when the last owner ended without closing: up to one flush of liveness may be missing. */
  readonly closedCleanly: boolean;
}

export type Changes =
  | {
      readonly revision: number;
      readonly subjects: readonly { readonly kind: string; readonly id: string }[];
    }
  /** The changes asked for are no longer kept: load everything again. */
  | 'too_old';

export interface Store {
  load(): StoreContents;
  /**
   * Gives back the memory that loading took. Call when all that was loaded has been taken, and before
   * anything is committed.
   */
  endLoading(): Promise<void>;
  /** Resolves to the unit's revision once it is on disk; rejects, storing nothing of it, otherwise. */
  commit(unit: Unit): Promise<number>;
  changes(since: number): Changes;
  touchMany(rows: readonly StoredLiveness[]): Promise<void>;
  /** Drops nonces whose time has passed. */
  forgetNonces(now: number): Promise<void>;
  /** Null when the store can be written and read, else what is wrong. */
  health(): string | null;
  close(): Promise<void>;
}

/** A write or a removal named a version that is no longer the stored one. */
export class StoreConflict extends Error {}

export const GENESIS_HASH = '0'.repeat(64);
