/**
 * Units that arrive while others are written are written together in the next flush. They are combined so that each
 * subject is written once, no matter how many units changed it. A unit that replaces a version other than the current one
 * is refused.
 */
import { StoreConflict, type SubjectKey, type Unit } from './store.ts';
import { addressOf, type EncodedUnit, NOT_STORED } from './units.ts';

export interface SubjectChange extends SubjectKey {
  /** The stored version that the change requires. */
  readonly replaced: number;
  /** `NOT_STORED` for a removal. */
  readonly version: number;
  /** The revision of the last unit that changed it. */
  readonly revision: number;
  readonly row: Buffer | null;
}

export interface Batch {
  /** In the order of their revisions. */
  readonly accepted: readonly PendingUnit[];
  /** Units that replace a version other than the one left by earlier units. */
  readonly refused: readonly PendingUnit[];
  readonly changes: readonly SubjectChange[];
  /** Ids whose liveness is removed with the subject, even if the subject was created again. */
  readonly removedIds: readonly string[];
  /** False if the database cannot check an assumed version, so that the versions must be read. */
  readonly isChecked: boolean;
}

/** The stored version of a subject; `NOT_STORED` if there is none. */
export type StoredVersion = (subject: SubjectKey) => number;

interface Change {
  readonly kind: string;
  readonly id: string;
  readonly replaces: number;
  readonly version: number;
  readonly row: Buffer | null;
}

/**
 * `storedVersion` is null to assume that the version that the first change of a subject replaces is stored, for a
 * database that checks it.
 */
export function putTogether(
  pending: readonly PendingUnit[],
  before: number,
  storedVersion: StoredVersion | null,
): Batch {
  const changed = new Map<string, SubjectChange>();
  const removedIds = new Set<string>();
  const accepted: PendingUnit[] = [];
  const refused: PendingUnit[] = [];

  function currentVersion(change: Change): number {
    const current = changed.get(addressOf(change));
    if (current !== undefined) return current.version;
    return storedVersion === null ? change.replaces : storedVersion(change);
  }

  function apply(change: Change, revision: number): void {
    const { kind, id, replaces, version, row } = change;
    const address = addressOf(change);
    const replaced = changed.get(address)?.replaced ?? replaces;
    changed.set(address, { kind, id, replaced, version, revision, row });
    if (version === NOT_STORED) removedIds.add(id);
  }

  for (const one of pending) {
    const changes = changesOf(one.unit);
    if (changes.some((change) => change.replaces !== currentVersion(change))) {
      refused.push(one);
      continue;
    }
    accepted.push(one);
    for (const change of changes) apply(change, before + accepted.length);
  }
  const changes = [...changed.values()];
  return {
    accepted,
    refused,
    changes: changes.filter((change) => !leavesNothing(change)),
    removedIds: [...removedIds],
    isChecked: storedVersion !== null || !changes.some(leavesNothing),
  };
}

/** Settles the units of a batch that was stored after the revision `before`. */
export function settle({ accepted, refused }: Batch, before: number): void {
  for (const [index, { resolve }] of accepted.entries()) resolve(before + index + 1);
  for (const { unit, reject } of refused) reject(conflictOf(unit));
}

function conflictOf({ subjects, removals }: EncodedUnit): StoreConflict {
  const names = [...subjects, ...removals].map(({ kind, id }) => `${kind} ${id}`);
  return new StoreConflict(`${names.join(' or ')} has changed meanwhile`);
}

/** Whether the subject was created and removed by the same batch. */
function leavesNothing({ replaced, version }: SubjectChange): boolean {
  return replaced === NOT_STORED && version === NOT_STORED;
}

function changesOf({ subjects, removals }: EncodedUnit): readonly Change[] {
  const removed = removals.map((removal) => ({ ...removal, version: NOT_STORED, row: null }));
  return removed.length === 0 ? subjects : [...subjects, ...removed];
}

export interface PendingUnit {
  readonly unit: EncodedUnit;
  readonly resolve: (revision: number) => void;
  readonly reject: (cause: unknown) => void;
}

interface UnitQueueOptions {
  /** Null while units can be stored; otherwise the reason why not. */
  failure(): string | null;
  /** Throws if the unit cannot be stored. */
  encode(unit: Unit): EncodedUnit;
  /** Removes some units from the front of the queue and settles them. */
  flush(waiting: PendingUnit[]): Promise<void>;
}

export function createUnitQueue({ failure, encode, flush }: UnitQueueOptions) {
  const waiting: PendingUnit[] = [];
  let flushing: Promise<void> | null = null;

  async function flushAll(): Promise<void> {
    // Units of one turn of the event loop belong in one flush, so wait until the turn is over.
    await Promise.resolve();
    while (waiting.length > 0) await flush(waiting);
    flushing = null;
  }

  return {
    commit: (unit: Unit) =>
      new Promise<number>((resolve, reject) => {
        const problem = failure();
        if (problem !== null) throw new Error(problem);
        waiting.push({ unit: encode(unit), resolve, reject });
        flushing ??= flushAll();
      }),
    /** Resolves when no unit is waiting or being written. */
    async settled() {
      await flushing;
    },
  };
}
