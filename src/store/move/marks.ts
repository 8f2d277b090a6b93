/** A state on its way: the marks on the place that it leaves and on the one that it goes to, and the copy of its rows. */
import { type MetaRows, metaChange, metaValue } from '../meta-rows.ts';
import type { LastEntry, StateReading } from '../stream/ports.ts';
import { keptRow, type StoredRow, type TableChange, type Tables } from '../tables.ts';

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

/** Answers come after nonces, because a database may store both in the same row. */
const COPIED = ['subjects', 'nonces', 'answers', 'audit', 'liveness', 'history'] as const;

/** The rows of table `meta` that go with the state to another database. */
export const MOVED_META = [
  'network',
  'epoch',
  'shapes',
  'forgotten_times',
  'unstored_times',
  'totals',
] as const;

const MOST_ROWS = 2000;
/** Limits the bytes that are written at once, because a single row may have several megabytes. */
const MOST_BYTES = 4 * 1024 ** 2;

/** Writes every row of the reading into tables that have none. */
export async function copyRows(
  reading: Pick<StateReading, 'tables' | 'meta'>,
  tables: Pick<Tables, 'write'>,
): Promise<void> {
  for (const table of COPIED) {
    let put: StoredRow[] = [];
    let bytes = 0;
    for await (const batch of reading.tables.scan(table, keptRow)) {
      for (const row of batch) {
        put.push(row);
        bytes += row.row.length;
        if (put.length < MOST_ROWS && bytes < MOST_BYTES) continue;
        await tables.write([{ table, put }]);
        put = [];
        bytes = 0;
      }
    }
    if (put.length > 0) await tables.write([{ table, put }]);
  }
  const put = MOVED_META.flatMap((key) => {
    const row = reading.meta.get(key);
    return row === undefined ? [] : [{ key, version: 0, row }];
  });
  await tables.write([{ table: 'meta', put }]);
}
