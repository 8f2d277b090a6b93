/**
 * The store port: everything the authority needs from durable state. Every implementation passes one
 * conformance suite (test/store/conformance.ts). Revisions are gapless and in commit order. Operations that
 * may wait for a disk or another machine return a promise.
 */
import type { JsonObject } from '../base/json/value.ts';

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
  /** The version that this write replaces; 0 means that the subject must not exist yet. */
  readonly replaces: number;
}

/** Removes a subject from the store, and the liveness stored under its id. */
export interface SubjectRemoval {
  readonly kind: string;
  readonly id: string;
  /** The stored version. */
  readonly replaces: number;
}

export interface SpentNonce {
  /** Digest of scope and nonce; the nonce itself is not stored. */
  readonly digest: string;
  /** When the nonce may be forgotten, milliseconds since the epoch. */
  readonly forgetAt: number;
}

/** The answer of a request, kept for when it is sent again; request and answer are opaque to the store. */
export interface KeptAnswer {
  /** Digest of the nonce that the request spent. */
  readonly digest: string;
  /** When the answer may be forgotten, milliseconds since the epoch. */
  readonly forgetAt: number;
  readonly request: string;
  readonly answer: string;
}

/** The instants after the first up to and including the second, in milliseconds since the epoch. */
export type TimeRange = readonly [after: number, until: number];

export interface AuditEntry {
  readonly event_id: string;
  readonly event_type: string;
  readonly details: JsonObject;
  readonly created_at: string;
  /** The operator key that caused it; absent when none did. */
  readonly actor_key_id?: string;
  readonly prev_hash: string;
  readonly hash: string;
}

/** An entry to be stored, with the canonical text that its hash covers. */
export interface SealedEntry {
  readonly entry: AuditEntry;
  readonly text: string;
}

/** Everything that one command changes; it is stored atomically. */
export interface Unit {
  /** Each subject appears in a unit once: it is written or removed. */
  readonly subjects: readonly SubjectWrite[];
  readonly removals: readonly SubjectRemoval[];
  readonly nonces: readonly SpentNonce[];
  /** None when absent. */
  readonly answers?: readonly KeptAnswer[];
  readonly audit: readonly SealedEntry[];
}

/** Liveness of one certificate: flushed in batches, never part of a unit. Instants in milliseconds. */
export interface StoredLiveness {
  readonly id: string;
  /** When the last heartbeat was accepted. */
  readonly lastSeen: number;
  readonly status: string;
  readonly remoteAddr: string;
  /** The newest timestamp that the node signed: after a restart nothing older is accepted from it. */
  readonly newestSignedAt: number;
}

/** How the previous holder of the state ended. */
export type PreviousOwner =
  /** There was none: the state is new. */
  | 'none'
  | 'closed'
  /** It never closed the store: up to one flush of liveness may be missing. */
  | 'lost';

/**
 * Everything at one revision. Rows come in batches, because a step of an asynchronous iteration costs more
 * than a row. Texts are sorted by their UTF-8 bytes, whatever order a database has.
 */
export interface Contents {
  readonly revision: number;
  /** By kind, and the subjects of one kind by id. */
  readonly subjects: AsyncIterable<readonly StoredSubject[]>;
  readonly nonces: AsyncIterable<readonly SpentNonce[]>;
  /** The sooner they may be forgotten, the earlier. */
  readonly answers: AsyncIterable<readonly KeptAnswer[]>;
  /** The argument of the last call of `forgetNonces` that dropped any. */
  readonly forgottenTimes: readonly TimeRange[];
  /** The argument of the last call of `touchMany`. */
  readonly unstoredTimes: readonly TimeRange[];
  /** By id. */
  readonly liveness: AsyncIterable<readonly StoredLiveness[]>;
  /** The last audit entries, oldest first. */
  readonly recentAudit: readonly AuditEntry[];
  /** Entries of the audit log. */
  readonly auditLength: number;
  /** Hash of the last audit entry; 64 zeros when there is none. */
  readonly auditHead: string;
}

export interface StoreContents extends Contents {
  readonly previousOwner: PreviousOwner;
  /** Frees what loading allocated. Call when everything is read, and before anything is committed. */
  dispose(): Promise<void>;
}

export type SubjectKey = Pick<StoredSubject, 'kind' | 'id'>;

/** Everything at one revision, read while another process writes it. */
export interface StoreReading extends Contents {
  /** Call when everything is read: the next changes are those after this revision. */
  end(): Promise<void>;
}

/** What has changed between two revisions: subjects as they are now, and `recentAudit` no older than the first. */
export interface StoreChanges extends StoreReading {
  /** Subjects that are not stored any more, some of which have come and gone in between. Known once `subjects` is read. */
  removals(): readonly SubjectKey[];
}

/** Reads the state while another process writes it. Ask for one thing at a time. */
export interface StateFollower {
  load(): Promise<StoreReading>;
  /**
   * What has changed since the last reading, of liveness only if it is asked for. Null when that is not known, for
   * instance because the state was replaced: everything has to be read again.
   */
  changes(withLiveness: boolean): Promise<StoreChanges | null>;
  /** The revision of the state when it was last looked at. */
  seenRevision(): number;
  /**
   * The newest that was ever read; null before the first. It stays what it is when the store has lost it, however far that
   * has gone on since.
   */
  newest(): StatePosition | null;
  /** Ends what is under way, which may be the wait for a server that is gone; what is asked for next is asked anew. */
  leave(): Promise<void>;
  /** The same for good. */
  close(): Promise<void>;
}

/** Where a state stands. */
export interface StatePosition {
  /** 1 plus the number of restores that led to it. */
  readonly epoch: number;
  readonly revision: number;
  readonly auditLength: number;
  readonly auditHead: string;
}

export interface Store {
  /** What is committed. Call when nothing is being committed. */
  position(): Promise<StatePosition>;
  /** The hash of the audit entry with this number, from 1; null when there is none. */
  auditHashAt(entry: number): Promise<string | null>;
  /**
   * The lines of the audit entries after this number, from 0, in order: as many as there are, and at most this many.
   * Each is the hash of the entry, and the canonical text that it covers.
   */
  auditAfter(entry: number, most: number): Promise<readonly string[]>;
  /** Rejects, as does the iteration of the rows, when what is stored is damaged. */
  load(): Promise<StoreContents>;
  /** Resolves to the unit's revision when it is on disk; otherwise rejects, with nothing stored. */
  commit(unit: Unit): Promise<number>;
  /** Stores liveness, and the signing times of requests that a crash would lose from now on. */
  touchMany(rows: readonly StoredLiveness[], unstoredTimes: readonly TimeRange[]): Promise<void>;
  /** Drops expired nonces and kept answers, and stores the ranges of signing times of their requests instead. */
  forgetNonces(now: number, forgottenTimes: readonly TimeRange[]): Promise<void>;
  /** Null when the store can be written and read, as far as is known; otherwise the problem. */
  health(): string | null;
  /** False when another process has taken over the state: nothing can be committed. */
  isOwner(): boolean;
  close(): Promise<void>;
  /** Releases the state as if its owner had died: the next process to open it finds it `lost`. */
  abandon(): Promise<void>;
}

/** A write or removal named a version that is not the stored one. */
export class StoreConflict extends Error {}

export const GENESIS_HASH = '0'.repeat(64);
