/**
 * The store port in memory. Writes are in flight until they are flushed, and a crash loses what was not
 * flushed: the simulation decides when, and in which order relative to everything else.
 */

import { deserialize, serialize } from 'node:v8';
import { compareCodePoints } from '../../src/base/json/write.ts';
import { auditLineOf } from '../../src/store/audit-log.ts';
import {
  type AuditEntry,
  GENESIS_HASH,
  type KeptAnswer,
  type PreviousOwner,
  type SealedEntry,
  type SpentNonce,
  type Store,
  StoreConflict,
  type StoreContents,
  type StoredHistory,
  type StoredLiveness,
  type StoredSubject,
  type TimeRange,
  type Unit,
} from '../../src/store/store.ts';
import { inOneBatch } from '../support/stored.ts';

/** What a crash leaves behind. */
export interface MemoryDisk {
  revision: number;
  /** By kind and id. Serialized, so that nothing in memory can change what is on disk. */
  readonly subjects: Map<string, Buffer>;
  readonly nonces: Map<string, SpentNonce>;
  readonly answers: Map<string, KeptAnswer>;
  forgottenTimes: readonly TimeRange[];
  unstoredTimes: readonly TimeRange[];
  readonly liveness: Map<string, StoredLiveness>;
  readonly history: Map<string, StoredHistory>;
  readonly audit: AuditEntry[];
  isHeld: boolean;
  lastOwner: PreviousOwner;
}

export function emptyDisk(): MemoryDisk {
  return {
    revision: 0,
    subjects: new Map(),
    nonces: new Map(),
    answers: new Map(),
    forgottenTimes: [],
    unstoredTimes: [],
    liveness: new Map(),
    history: new Map(),
    audit: [],
    isHeld: false,
    lastOwner: 'none',
  };
}

/** One write that was accepted and not answered yet. */
export interface InFlight {
  readonly what: 'unit' | 'liveness' | 'forgetting' | 'history';
  /** Null for all but units. */
  readonly unit: Unit | null;
  isDurable: boolean;
  readonly apply: (disk: MemoryDisk) => number;
  readonly resolve: (revision: number) => void;
  readonly reject: (cause: Error) => void;
  revision: number;
}

export interface MemoryStore extends Store {
  /** The oldest first. */
  readonly inFlight: readonly InFlight[];
  /** Makes the oldest writes in flight durable; they are not answered yet. */
  persist(count?: number): void;
  /** Answers every write that is durable. */
  answer(): void;
  /** A flush fails: rejects what is not durable, and every later write. */
  fail(cause: Error): void;
  /** The holder dies: nothing that was not durable reaches the disk any more. */
  crash(): void;
}

const RECENT_AUDIT = 1000;

export function openMemoryStore(disk: MemoryDisk, flush: 'at_once' | 'by_hand'): MemoryStore {
  if (disk.isHeld) throw new Error('The state is in use by another process');
  const previousOwner = disk.lastOwner;
  disk.isHeld = true;
  disk.lastOwner = 'lost';
  const versions = new Map<string, number>();
  for (const [key, bytes] of disk.subjects) versions.set(key, subjectOf(bytes).version);
  let inFlight: InFlight[] = [];
  let failure: Error | null = null;
  let isDead = false;

  function enqueue(
    what: InFlight['what'],
    unit: Unit | null,
    apply: InFlight['apply'],
  ): Promise<number> {
    if (failure !== null) return Promise.reject(failure);
    return new Promise((resolve, reject) => {
      inFlight.push({ what, unit, apply, resolve, reject, isDurable: false, revision: 0 });
      if (flush === 'at_once') setImmediate(flushAll);
    });
  }

  function flushAll(): void {
    persist();
    answer();
  }

  function persist(count = inFlight.length): void {
    if (isDead) return;
    for (const write of inFlight.slice(0, count)) {
      if (write.isDurable) continue;
      write.revision = write.apply(disk);
      write.isDurable = true;
    }
  }

  function answer(): void {
    if (isDead) return;
    const durable = inFlight.filter(({ isDurable }) => isDurable);
    inFlight = inFlight.filter(({ isDurable }) => !isDurable);
    for (const { resolve, revision } of durable) resolve(revision);
  }

  function letGo(): void {
    isDead = true;
    disk.isHeld = false;
  }

  function conflictIn(unit: Unit): Error | null {
    const named = new Set<string>();
    for (const { kind, id, replaces } of [...unit.subjects, ...unit.removals]) {
      const key = keyOf(kind, id);
      if (named.has(key)) return new Error('A unit names a subject twice');
      named.add(key);
      const version = versions.get(key) ?? 0;
      if (version !== replaces) {
        return new StoreConflict(`${kind} ${id} is at version ${version}, not ${replaces}`);
      }
    }
    return null;
  }

  return {
    get inFlight() {
      return inFlight;
    },
    persist,
    answer,
    fail(cause) {
      failure = cause;
      const lost = inFlight.filter(({ isDurable }) => !isDurable);
      inFlight = inFlight.filter(({ isDurable }) => isDurable);
      for (const { reject } of lost) reject(cause);
    },
    crash() {
      inFlight = [];
      letGo();
    },
    position: () =>
      Promise.resolve({
        epoch: 1,
        revision: disk.revision,
        auditLength: disk.audit.length,
        auditHead: disk.audit.at(-1)?.hash ?? GENESIS_HASH,
      }),
    auditHashAt: (entry) => Promise.resolve(disk.audit[entry - 1]?.hash ?? null),
    auditAfter: (entry, most) =>
      Promise.resolve(disk.audit.slice(entry, entry + most).map(auditLineOf)),
    subjectsOf: (kind) =>
      Promise.resolve(
        [...disk.subjects.values()]
          .map(subjectOf)
          .filter((subject) => subject.kind === kind)
          .sort((one, other) => compareCodePoints(one.id, other.id)),
      ),
    load: () => Promise.resolve(contentsOf(disk, previousOwner)),
    commit(unit) {
      const conflict = conflictIn(unit);
      if (conflict !== null) return Promise.reject(conflict);
      for (const { kind, id, version } of unit.subjects) versions.set(keyOf(kind, id), version);
      for (const { kind, id } of unit.removals) versions.delete(keyOf(kind, id));
      return enqueue('unit', unit, unitWriter(unit));
    },
    async touchMany(rows, unstoredTimes) {
      const copies = rows.map((row) => ({ ...row }));
      await enqueue('liveness', null, (disk) => {
        for (const row of copies) disk.liveness.set(row.id, row);
        disk.unstoredTimes = unstoredTimes;
        return disk.revision;
      });
    },
    async forgetNonces(now, forgottenTimes) {
      await enqueue('forgetting', null, (disk) => {
        const past = [...disk.nonces.values()].filter(({ forgetAt }) => forgetAt < now);
        for (const { digest } of past) {
          disk.nonces.delete(digest);
          disk.answers.delete(digest);
        }
        if (past.length > 0) disk.forgottenTimes = forgottenTimes;
        return disk.revision;
      });
    },
    async putHistory(rows) {
      await enqueue('history', null, (disk) => {
        for (const row of rows) disk.history.set(`${row.seconds} ${row.slot}`, row);
        return disk.revision;
      });
    },
    history: () =>
      inOneBatch(
        [...disk.history.values()].sort(
          (one, other) => one.seconds - other.seconds || one.slot - other.slot,
        ),
      ),
    health: () => (failure === null ? null : failure.message),
    isOwner: () => !isDead,
    close() {
      flushAll();
      if (failure === null) disk.lastOwner = 'closed';
      letGo();
      return Promise.resolve();
    },
    abandon() {
      flushAll();
      letGo();
      return Promise.resolve();
    },
  };
}

/** Serialized when it is accepted: the caller's objects may change before the flush. */
function unitWriter({ subjects, removals, nonces, answers = [], audit }: Unit): InFlight['apply'] {
  const rows = subjects.map(({ kind, id, version, snapshot }) => ({
    kind,
    id,
    bytes: serialize({ kind, id, version, snapshot }),
  }));
  return (disk) => {
    for (const { kind, id, bytes } of rows) disk.subjects.set(keyOf(kind, id), bytes);
    for (const { kind, id } of removals) {
      disk.subjects.delete(keyOf(kind, id));
      disk.liveness.delete(id);
    }
    for (const nonce of nonces) disk.nonces.set(nonce.digest, { ...nonce });
    for (const answer of answers) disk.answers.set(answer.digest, { ...answer });
    disk.audit.push(...audit.map(({ entry }: SealedEntry) => entry));
    disk.revision += 1;
    return disk.revision;
  };
}

export function contentsOf(disk: MemoryDisk, previousOwner: PreviousOwner): StoreContents {
  return {
    revision: disk.revision,
    subjects: inOneBatch(
      inOrder([...disk.subjects].map(([key, bytes]) => [key, subjectOf(bytes)])),
    ),
    forgottenTimes: disk.forgottenTimes,
    unstoredTimes: disk.unstoredTimes,
    nonces: inOneBatch([...disk.nonces.values()].map((nonce) => ({ ...nonce }))),
    answers: inOneBatch([...disk.answers.values()]),
    liveness: inOneBatch(inOrder([...disk.liveness].map(([key, row]) => [key, { ...row }]))),
    recentAudit: disk.audit.slice(-RECENT_AUDIT),
    auditLength: disk.audit.length,
    auditHead: disk.audit.at(-1)?.hash ?? GENESIS_HASH,
    previousOwner,
    dispose: () => Promise.resolve(),
  };
}

/** By their keys, in the order of bytes. */
function inOrder<T>(rows: (readonly [string, T])[]): T[] {
  return rows
    .map(([key, row]) => [Buffer.from(key), row] as const)
    .sort(([a], [b]) => Buffer.compare(a, b))
    .map(([, row]) => row);
}

function keyOf(kind: string, id: string): string {
  return `${kind} ${id}`;
}

export function subjectOf(bytes: Buffer): StoredSubject {
  return deserialize(bytes) as StoredSubject;
}
