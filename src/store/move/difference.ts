/** Turns one state into another by reading both in key order and applying the differences. */

import { metaValue, readMeta } from '../meta-rows.ts';
import type { RowKey, TableName } from '../rows.ts';
import type { StateReading } from '../stream/ports.ts';
import {
  compareKeys,
  counted,
  type Head,
  headOf,
  keptRow,
  type StoredRow,
  type TableChange,
  type Tables,
} from '../tables.ts';

/** Answers come after nonces, because a database may store both in the same row. */
const COMPARED = ['subjects', 'nonces', 'answers', 'audit', 'liveness', 'history'] as const;

/** The rows of table `meta` that go with the state to another database. */
export const MOVED_META = [
  'network',
  'epoch',
  'shapes',
  'forgotten_times',
  'unstored_times',
  'totals',
] as const;

/**
 * Makes the tables match the reading; `changed` is called after each change was applied. Returns the number of rows
 * that were put or dropped. Rejects if the reading lacks rows.
 */
export async function copyDifference(
  reading: Pick<StateReading, 'tables' | 'meta'>,
  tables: Tables,
  changed: (change: Required<TableChange>) => void = () => undefined,
): Promise<number> {
  const { subjects, nonceRows: nonces } = metaValue(reading.meta, 'totals');
  const totals: { readonly [table in TableName]?: number } = { subjects, nonces };
  // The log is append-only, so it is compared only from its last row on.
  const { auditEntries } = metaValue(await readMeta(tables), 'totals');
  const logEnd = auditEntries === 0 ? null : auditEntries - 1;
  let rows = 0;
  for (const table of COMPARED) {
    const after = table === 'audit' ? logEnd : null;
    const present = headOf(tables.scan(table, keptRow, { after }));
    const read = reading.tables.scan(table, keptRow, { after });
    const total = totals[table];
    const wanted = headOf(total === undefined ? read : counted(table, total, read));
    const changes = createChanges(table, async (change) => {
      await tables.write([change]);
      changed(change);
    });
    await compare(wanted, present, changes);
    rows += await changes.end();
  }
  const put = MOVED_META.flatMap((key) => {
    const row = reading.meta.get(key);
    return row === undefined ? [] : [{ key, version: 0, row }];
  });
  await tables.write([{ table: 'meta', put }]);
  return rows;
}

async function compare(
  wanted: Head<StoredRow>,
  present: Head<StoredRow>,
  changes: Changes,
): Promise<void> {
  for (;;) {
    if (wanted.isSpent()) await wanted.fetch();
    if (present.isSpent()) await present.fetch();
    const [row, found] = [wanted.item(), present.item()];
    if (row === undefined && found === undefined) return;
    const order = orderOf(row, found);
    if (order <= 0) wanted.step();
    if (order >= 0) present.step();
    if (order > 0 && found !== undefined) changes.drop(found.key);
    else if (row !== undefined && !(order === 0 && isSame(row, found))) changes.put(row);
    if (changes.isFull()) await changes.write();
  }
}

/** A missing row sorts last. */
function orderOf(row: StoredRow | undefined, found: StoredRow | undefined): number {
  if (row === undefined) return 1;
  return found === undefined ? -1 : compareKeys(row.key, found.key);
}

function isSame(row: StoredRow, found: StoredRow | undefined): boolean {
  return row.version === found?.version && row.row.equals(found.row);
}

interface Changes {
  put(row: StoredRow): void;
  drop(key: RowKey): void;
  isFull(): boolean;
  write(): Promise<void>;
  /** Writes the remaining changes; returns the total number of changed rows. */
  end(): Promise<number>;
}

const MOST_ROWS = 2000;
/** Limits the bytes per batch, because a single row may have several megabytes. */
const MOST_BYTES = 4 * 1024 ** 2;

function createChanges(
  table: TableName,
  apply: (change: Required<TableChange>) => Promise<void>,
): Changes {
  let put: StoredRow[] = [];
  let drop: RowKey[] = [];
  let bytes = 0;
  let rows = 0;

  async function write(): Promise<void> {
    if (put.length + drop.length === 0) return;
    await apply({ table, put, drop });
    rows += put.length + drop.length;
    put = [];
    drop = [];
    bytes = 0;
  }

  return {
    put(row) {
      put.push(row);
      bytes += row.row.length;
    },
    drop: (key) => void drop.push(key),
    isFull: () => put.length + drop.length >= MOST_ROWS || bytes >= MOST_BYTES,
    write,
    async end() {
      await write();
      return rows;
    },
  };
}
