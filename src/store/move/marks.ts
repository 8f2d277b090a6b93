/** The marks on a place whose state was moved elsewhere, or into which a state is being moved. */
import { type MetaRows, metaChange, metaValue } from '../meta-rows.ts';
import type { LastEntry } from '../stream/ports.ts';
import type { TableChange } from '../tables.ts';

export function movedElsewhere(place: string, successor: string | null): Error {
  return new Error(`The state in ${place} was moved to ${successor} and continues there`);
}

/** `place` names the location of the mark, for messages. */
export function assertNotMoved(meta: Pick<MetaRows, 'get'>, place: string): void {
  const successor = metaValue(meta, 'moved');
  if (successor !== null) throw movedElsewhere(place, successor);
}

/** `place` names the location of the mark, for messages. */
export function assertArrived(isArriving: boolean, place: string): void {
  if (!isArriving) return;
  throw new Error(
    `A state is being moved into ${place}; if that was interrupted, repeat the same mesh-na store move, which finishes it`,
  );
}

/** The changes that add the last entry to a state. */
export function lastChanges({ number, row, totals }: LastEntry): readonly TableChange[] {
  return [{ table: 'audit', put: [{ key: number, version: 0, row }] }, metaChange({ totals })];
}

/** The changes that add the last entry to the old place and mark it as moved. */
export function retirement(last: LastEntry, successor: string): readonly TableChange[] {
  return [...lastChanges(last), metaChange({ moved: successor })];
}
