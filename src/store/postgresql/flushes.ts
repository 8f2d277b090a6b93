/** Reads the log of changes per flush, for processes that follow a state that another process writes. */
import type { SubjectKey } from '../store.ts';
import { addressOf } from '../units.ts';

export interface Flush {
  readonly revision: string;
  readonly follows: string;
  readonly holder: string | null;
  readonly kinds: readonly string[];
  readonly ids: readonly Buffer[];
  readonly buckets: readonly string[];
}

/** Selects the flush with this revision and all later ones. */
export const FLUSHES = `select revision, follows, holder, kinds, ids, buckets from mesh_na.changes
  where revision >= $1 order by revision`;
export const HOLDER = 'select holder from mesh_na.changes where revision = $1';

/** The position where a read ended. */
export interface FlushPosition {
  readonly revision: number;
  /** The process that wrote the flush with that revision; null if the database does not show it. */
  readonly holder: string | null;
}

/** Null if the database does not record all changes from there to this revision. */
export function flushesAfter(
  from: FlushPosition,
  revision: number,
  found: readonly Flush[],
): readonly Flush[] | null {
  const isStart = Number(found[0]?.revision) === from.revision;
  if ((isStart ? found[0]?.holder : null) !== from.holder) return null;
  const flushes = isStart ? found.slice(1) : found;
  let reached = from.revision;
  for (const flush of flushes) {
    if (Number(flush.follows) !== reached) return null;
    reached = Number(flush.revision);
  }
  return reached === revision ? flushes : null;
}

/** The changed subjects by address, without duplicates. */
export function changedSubjects(flushes: readonly Flush[]): Map<string, SubjectKey> {
  const changed = new Map<string, SubjectKey>();
  for (const { kinds, ids } of flushes) {
    for (const [index, id] of ids.entries()) {
      const subject = { kind: kinds[index] as string, id: id.toString() };
      changed.set(addressOf(subject), subject);
    }
  }
  return changed;
}
