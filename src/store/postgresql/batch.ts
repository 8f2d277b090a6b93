/**
 * Combines the units of one flush so that each subject is written once, no matter how many units changed it. The
 * version that the first change replaces is assumed to be stored, and the database checks that.
 */
import type { SubjectKey } from '../store.ts';
import { addressOf, type EncodedUnit, NOT_STORED } from '../units.ts';

export interface SubjectChange extends SubjectKey {
  /** The stored version that the change requires. */
  readonly replaced: number;
  /** `NOT_STORED` for a removal. */
  readonly version: number;
  /** The revision of the last unit that changed it. */
  readonly revision: number;
  readonly row: Buffer | null;
}

export interface Batch<Pending> {
  /** In the order of their revisions. */
  readonly accepted: readonly Pending[];
  /** Units that replace a version other than the one left by earlier units. */
  readonly refused: readonly Pending[];
  readonly changes: readonly SubjectChange[];
  /** Ids whose liveness is removed with the subject, even if the subject was created again. */
  readonly removedIds: readonly string[];
  /** False if the database cannot check an assumed version, so that the versions must be read. */
  readonly isChecked: boolean;
}

/** Versions by address; a subject that is not in the store is not in the map. */
export type StoredVersions = ReadonlyMap<string, number>;

interface Change {
  readonly kind: string;
  readonly id: string;
  readonly replaces: number;
  readonly version: number;
  readonly row: Buffer | null;
}

/** `stored` contains the stored versions of all subjects in the units; null to assume that they match. */
export function putTogether<Pending extends { readonly unit: EncodedUnit }>(
  pending: readonly Pending[],
  before: number,
  stored: StoredVersions | null,
): Batch<Pending> {
  const changed = new Map<string, SubjectChange>();
  const removedIds = new Set<string>();
  const accepted: Pending[] = [];
  const refused: Pending[] = [];

  function currentVersion(change: Change): number {
    const address = addressOf(change);
    const current = changed.get(address);
    if (current !== undefined) return current.version;
    return stored === null ? change.replaces : (stored.get(address) ?? NOT_STORED);
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
    isChecked: stored !== null || !changes.some(leavesNothing),
  };
}

/** Whether the subject was created and removed by the same batch. */
function leavesNothing({ replaced, version }: SubjectChange): boolean {
  return replaced === NOT_STORED && version === NOT_STORED;
}

function changesOf({ subjects, removals }: EncodedUnit): readonly Change[] {
  const removed = removals.map((removal) => ({ ...removal, version: NOT_STORED, row: null }));
  return removed.length === 0 ? subjects : [...subjects, ...removed];
}
