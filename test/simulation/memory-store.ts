/**
 * The store port in memory. Writes are in flight until they are flushed, and a crash loses what was not flushed: the
 * simulation decides when, and in which order relative to everything else.
 */

import { type Store, StoreConflict, type Unit } from '../../src/store/store.ts';
import { inOneBatch } from '../support/stored.ts';
import { keyOf, type MemoryDisk, storeOn, subjectOf, type Write } from './memory-disk.ts';

/** A write that was accepted but is not answered yet. */
export interface InFlight {
  /** Null for all writes except units. */
  readonly unit: Unit | null;
  isDurable: boolean;
  readonly apply: Write;
  readonly resolve: (revision: number) => void;
  readonly reject: (cause: Error) => void;
  revision: number;
}

export interface MemoryStore extends Store {
  /** Oldest first. */
  readonly inFlight: readonly InFlight[];
  /** Makes the oldest writes in flight durable, without answering them. */
  persist(count?: number): void;
  /** Answers every durable write. */
  answer(): void;
  /** A flush fails: rejects every write that is not durable, and all later ones. */
  fail(cause: Error): void;
  /** The holder dies: nothing that is not durable yet reaches the disk. */
  crash(): void;
}

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

  const port = storeOn({ ask: async (question) => question(disk), change, previousOwner });

  function change(apply: Write, unit: Unit | null): Promise<number> {
    if (failure !== null) return Promise.reject(failure);
    return new Promise((resolve, reject) => {
      inFlight.push({ unit, apply, resolve, reject, isDurable: false, revision: 0 });
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
    ...port,
    commit(unit) {
      const conflict = conflictIn(unit);
      if (conflict !== null) return Promise.reject(conflict);
      for (const { kind, id, version } of unit.subjects) versions.set(keyOf(kind, id), version);
      for (const { kind, id } of unit.removals) versions.delete(keyOf(kind, id));
      return port.commit(unit);
    },
    async putHistory(rows) {
      await change((disk) => {
        for (const row of rows) disk.history.set(`${row.seconds} ${row.slot}`, row);
        return disk.revision;
      }, null);
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
