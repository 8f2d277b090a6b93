/** What says of a place that its state goes on elsewhere, or that one is being moved into it. */
import { type Arrival, type MetaRows, metaChange, metaValue } from '../meta-rows.ts';
import type { LastEntry } from '../stream/ports.ts';
import type { TableChange } from '../tables.ts';

/** `place` is where the mark was found, as a sentence names it. */
export function assertNotMoved(meta: Pick<MetaRows, 'get'>, place: string): void {
  const successor = metaValue(meta, 'moved');
  if (successor === null) return;
  throw new Error(`The state in ${place} was moved to ${successor}, and goes on there`);
}

/** `place` is where the mark was found, as a sentence names it. */
export function assertArrived(arrival: Arrival | null, place: string): void {
  if (arrival === null) return;
  throw new Error(
    `A state is being moved into ${place}, from ${arrival.from}; if that was interrupted, repeat mesh-na store move with --resume, or end it with --abandon`,
  );
}

/** What adds the last entry to a state. */
export function lastChanges({ number, row, totals }: LastEntry): readonly TableChange[] {
  return [{ table: 'audit', put: [{ key: number, version: 0, row }] }, metaChange({ totals })];
}

/** What adds it to the old place, which is never opened again. */
export function retirement(last: LastEntry, successor: string): readonly TableChange[] {
  return [...lastChanges(last), metaChange({ moved: successor })];
}
