/** A state in memory that outlives the process, as if on disk, with its readers and writers. */
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
  type StatePosition,
  type Store,
  type StoreContents,
  type StoredHistory,
  type StoredLiveness,
  type StoredSubject,
  type TimeRange,
  type Unit,
} from '../../src/store/store.ts';
import { inOneBatch } from '../support/stored.ts';
import { copyOf } from './copies.ts';

const RECENT_AUDIT = 1000;

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

export function copyOfDisk(disk: MemoryDisk): MemoryDisk {
  return { ...copyOf(disk), audit: [...disk.audit] };
}

/** The position of the disk in its history. */
export function positionOf({ revision, audit }: MemoryDisk): StatePosition {
  const auditHead = audit.at(-1)?.hash ?? GENESIS_HASH;
  return { epoch: 1, revision, auditLength: audit.length, auditHead };
}

/** Changes what is on disk; returns its revision. */
export type Write = (disk: MemoryDisk) => number;

/** How a process reaches the disk. */
export interface Reach {
  ask<Result>(question: (disk: MemoryDisk) => Result): Promise<Result>;
  /** Resolves with the revision once the change is durable; `unit` is null unless it is one. */
  change(write: Write, unit: Unit | null): Promise<number>;
  readonly previousOwner: PreviousOwner;
}

/** What every store on such a disk does. */
export function storeOn({ ask, change, previousOwner }: Reach) {
  return {
    position: () => ask(positionOf),
    auditHashAt: (entry) => ask(({ audit }) => audit[entry - 1]?.hash ?? null),
    auditAfter: (entry, most) =>
      ask(({ audit }) => audit.slice(entry, entry + most).map(auditLineOf)),
    subjectsOf: (kind) => ask((disk) => subjectsOn(disk, kind)),
    load: () => ask((disk) => contentsOf(disk, previousOwner)),
    commit: (unit) => change(unitWriter(unit), unit),
    async touchMany(rows, unstoredTimes) {
      await change(livenessWriter(rows, unstoredTimes), null);
    },
    async forgetNonces(now, forgottenTimes) {
      await change(nonceForgetter(now, forgottenTimes), null);
    },
  } satisfies Partial<Store>;
}

export function subjectsOn(disk: MemoryDisk, kind: string): StoredSubject[] {
  // Instances ask all the time, so only what is asked for is deserialized.
  return [...disk.subjects]
    .filter(([key]) => key.startsWith(keyOf(kind, '')))
    .map(([, bytes]) => subjectOf(bytes))
    .sort((one, other) => compareCodePoints(one.id, other.id));
}

function livenessWriter(
  rows: readonly StoredLiveness[],
  unstoredTimes: readonly TimeRange[] | null,
): Write {
  const copies = rows.map((row) => ({ ...row }));
  return (disk) => {
    for (const row of copies) disk.liveness.set(row.id, row);
    disk.unstoredTimes = unstoredTimes ?? disk.unstoredTimes;
    return disk.revision;
  };
}

function nonceForgetter(now: number, forgottenTimes: readonly TimeRange[]): Write {
  return (disk) => {
    const past = [...disk.nonces.values()].filter(({ forgetAt }) => forgetAt < now);
    for (const { digest } of past) {
      disk.nonces.delete(digest);
      disk.answers.delete(digest);
    }
    if (past.length > 0) disk.forgottenTimes = forgottenTimes;
    return disk.revision;
  };
}

/** Serializes the unit immediately, because the caller's objects may change before the flush. */
function unitWriter({ subjects, removals, nonces, answers = [], audit }: Unit): Write {
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

/** Sorted by key, in byte order. */
function inOrder<T>(rows: (readonly [string, T])[]): T[] {
  return rows
    .map(([key, row]) => [Buffer.from(key), row] as const)
    .sort(([a], [b]) => Buffer.compare(a, b))
    .map(([, row]) => row);
}

export function keyOf(kind: string, id: string): string {
  return `${kind} ${id}`;
}

export function subjectOf(bytes: Buffer): StoredSubject {
  return deserialize(bytes) as StoredSubject;
}
