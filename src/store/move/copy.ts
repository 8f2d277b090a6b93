/** Copies the stored rows of a state into another database, as they are. */
import type { StateReading } from '../stream/ports.ts';
import { keptRow, type StoredRow, type Tables } from '../tables.ts';

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
