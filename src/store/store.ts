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
  /** The earliest that the nonce may be forgotten, milliseconds since the epoch. */
  readonly forgetAt: number;
}

/** The answer to a request, kept in case the request is sent again. Both are opaque to the store. */
export interface KeptAnswer {
  /** Digest of the nonce that the request spent. */
  readonly digest: string;
  /** The earliest that the answer may be forgotten, milliseconds since the epoch. */
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
  /** The operator key that caused the entry; absent if there was none. */
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
  /** Each subject appears only once in a unit: it is either written or removed. */
  readonly subjects: readonly SubjectWrite[];
  readonly removals: readonly SubjectRemoval[];
  readonly nonces: readonly SpentNonce[];
  /** No answers if absent. */
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
  /** The newest timestamp that the node signed; after a restart, nothing older is accepted from the node. */
  readonly newestSignedAt: number;
}

/** A row of the history: where it is in its ring, and values without meaning to the store. Never part of a unit. */
export interface StoredHistory {
  /** The length of the time that the row is about: each length has a ring of its own. */
  readonly seconds: number;
  readonly slot: number;
  readonly values: readonly number[];
}

/** How the previous holder of the state ended. */
export type PreviousOwner =
  /** There was none: the state is new. */
  | 'none'
  | 'closed'
  /** It never closed the store: up to one flush of liveness may be missing. */
  | 'lost';

/**
 * The complete state at one revision. Rows come in batches, because a step of an asynchronous iteration costs more
 * than a row. Texts are sorted by their UTF-8 bytes, regardless of the sort order of the database.
 */
export interface Contents {
  readonly revision: number;
  /** Sorted by kind, then by id. */
  readonly subjects: AsyncIterable<readonly StoredSubject[]>;
  readonly nonces: AsyncIterable<readonly SpentNonce[]>;
  /** Sorted by the time when they may be forgotten, earliest first. */
  readonly answers: AsyncIterable<readonly KeptAnswer[]>;
  /** The argument of the last `forgetNonces` call that dropped any nonces. */
  readonly forgottenTimes: readonly TimeRange[];
  /** Those of the last `touchMany` call that had any. */
  readonly unstoredTimes: readonly TimeRange[];
  /** Sorted by id. */
  readonly liveness: AsyncIterable<readonly StoredLiveness[]>;
  /** The last audit entries, oldest first. */
  readonly recentAudit: readonly AuditEntry[];
  /** The number of entries in the audit log. */
  readonly auditLength: number;
  /** The hash of the last audit entry; 64 zeros if there is none. */
  readonly auditHead: string;
}

export interface StoreContents extends Contents {
  readonly previousOwner: PreviousOwner;
  /** Frees what loading allocated. Call after everything was read and before anything is committed. */
  dispose(): Promise<void>;
}

export type SubjectKey = Pick<StoredSubject, 'kind' | 'id'>;

/** The complete state at one revision, read while another process writes it. */
export interface StoreReading extends Contents {
  /** Call after everything was read; the next changes are those after this revision. */
  end(): Promise<void>;
}

/**
 * The changes between two revisions: subjects in their current form, keys of the authority before certificates and
 * restored revocations, and in `recentAudit` only later entries.
 */
export interface StoreChanges extends StoreReading {
  /**
   * Subjects that are no longer stored, including some that were created and removed in between. Known once `subjects`
   * was read.
   */
  removals(): readonly SubjectKey[];
}

/** Reads the state while another process writes it. Only one call may be in progress at a time. */
export interface StandbyReader {
  load(): Promise<StoreReading>;
  /**
   * The changes since the last read; those of liveness only on request. Null if they are not known, for example
   * because the state was replaced: then everything has to be read again.
   */
  changes(withLiveness: boolean): Promise<StoreChanges | null>;
  /** The revision of the state at the last look. */
  seenRevision(): number;
  /**
   * The newest position that was ever read; null before the first read. It stays the same if the store has lost it, no
   * matter how far the store has continued since.
   */
  newest(): StatePosition | null;
  /** Ends the read in progress, which may be waiting for a lost server; the next read starts over. */
  leave(): Promise<void>;
  /** Like `leave`, but permanent. */
  close(): Promise<void>;
}

/** The position of a state in its history. */
export interface StatePosition {
  /** 1 plus the number of restores that led to the state. */
  readonly epoch: number;
  readonly revision: number;
  readonly auditLength: number;
  readonly auditHead: string;
}

/** The problem of a store whose disk seems to hang. */
export const COMMIT_OVERDUE = 'a commit does not reach the disk';

export interface Store {
  /** The position of the committed state. Call when nothing is being committed. */
  position(): Promise<StatePosition>;
  /** The hash of the audit entry with this number, from 1; null if there is none. */
  auditHashAt(entry: number): Promise<string | null>;
  /**
   * The lines of the audit entries after this number, from 0, in order, at most `most` of them. Each line is the hash
   * of an entry, followed by the canonical text that the hash covers.
   */
  auditAfter(entry: number, most: number): Promise<readonly string[]>;
  /** The subjects of a kind of which there are few, sorted by id, before everything is loaded. */
  subjectsOf(kind: string): Promise<readonly StoredSubject[]>;
  /** Rejects if the stored state is damaged; so does the iteration over the rows. */
  load(): Promise<StoreContents>;
  /** Resolves to the unit's revision when it is on disk; otherwise rejects, with nothing stored. */
  commit(unit: Unit): Promise<number>;
  /**
   * Stores liveness, and the signing times of requests that a crash would lose from now on; null keeps the stored ones.
   * Pass at most a few thousand rows, because commits have to wait for them.
   */
  touchMany(
    rows: readonly StoredLiveness[],
    unstoredTimes: readonly TimeRange[] | null,
  ): Promise<void>;
  /** Drops expired nonces and kept answers, and stores the ranges of signing times of their requests instead. */
  forgetNonces(now: number, forgottenTimes: readonly TimeRange[]): Promise<void>;
  /** Puts rows of the history in the place of those in the same slots. */
  putHistory(rows: readonly StoredHistory[]): Promise<void>;
  /** The rows of the history without those that are damaged: the rest can be used without them. */
  history(): AsyncIterable<readonly StoredHistory[]>;
  /** Null if the store can be read and written, as far as known; otherwise the problem. */
  health(): string | null;
  /** False if another process has taken over the state, so that nothing can be committed. */
  isOwner(): boolean;
  close(): Promise<void>;
  /** Releases the state as if its owner had died: the next process to open it finds it `lost`. */
  abandon(): Promise<void>;
}

/** A write or removal named a version other than the stored one. */
export class StoreConflict extends Error {}

export const GENESIS_HASH = '0'.repeat(64);
