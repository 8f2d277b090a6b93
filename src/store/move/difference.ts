/** Turns one state into another by applying their differences: both are read side by side in the order of their keys. */
import type { RowKey, TableName } from '../rows.ts';
import {
  compareKeys,
  counted,
  type Head,
  headOf,
  keptRow,
  type RowReader,
  type RowWriter,
  type StoredRow,
} from '../stored-rows.ts';
import { totalsIn } from '../totals.ts';
import { MOVED_META, type StateReading } from './ports.ts';

/** The place that is changed to hold what another holds. */
export interface ComparedPlace extends RowReader, RowWriter {
  /** As many entries has its audit log. */
  readonly auditEntries: number;
  /** Called with each change once it is applied. */
  changed?(table: TableName, put: readonly StoredRow[], dropped: readonly RowKey[]): void;
}

/** Answers come after the nonces with which they may lie in one row. */
const COMPARED = ['subjects', 'nonces', 'answers', 'audit', 'liveness'] as const;

/** Returns the number of rows that were put and dropped. Rejects when what is read lacks rows. */
export async function copyDifference(
  reading: Pick<StateReading, 'scan' | 'meta'>,
  place: ComparedPlace,
): Promise<number> {
  const { subjects, nonceRows: nonces } = totalsIn(reading.meta);
  const totals: { readonly [table in TableName]?: number } = { subjects, nonces };
  // What was written to the log never changes, so it is compared from its last row on.
  const logEnd = place.auditEntries === 0 ? null : place.auditEntries - 1;
  let rows = 0;
  for (const table of COMPARED) {
    const after = table === 'audit' ? logEnd : null;
    const present = headOf(place.scan(table, keptRow, after));
    const read = reading.scan(table, keptRow, after);
    const total = totals[table];
    const stopRequested = headOf(total === undefined ? read : counted(table, total, read));
    const changes = createChanges(table, place);
    await compare(stopRequested, present, changes);
    rows += await changes.end();
  }
  return rows;
}

async function compare(
  stopRequested: Head<StoredRow>,
  present: Head<StoredRow>,
  changes: Changes,
): Promise<void> {
  for (;;) {
    if (stopRequested.isSpent()) await stopRequested.fetch();
    if (present.isSpent()) await present.fetch();
    const [row, found] = [stopRequested.item(), present.item()];
    if (row === undefined && found === undefined) return;
    const order = orderOf(row, found);
    if (order <= 0) stopRequested.step();
    if (order >= 0) present.step();
    if (order > 0 && found !== undefined) changes.drop(found.key);
    else if (row !== undefined && !(order === 0 && isSame(row, found))) changes.put(row);
    if (changes.isFull()) await changes.write();
  }
}

/** What is not there comes last. */
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
  /** Returns how many there were. */
  end(): Promise<number>;
}

const MOST_ROWS = 2000;
/** A row may be of many megabytes. */
const MOST_BYTES = 4 * 1024 ** 2;

function createChanges(table: TableName, place: ComparedPlace): Changes {
  let put: StoredRow[] = [];
  let dropped: RowKey[] = [];
  let bytes = 0;
  let rows = 0;

  async function write(): Promise<void> {
    if (dropped.length > 0) await place.drop(table, dropped);
    if (put.length > 0) await place.put(table, put);
    place.changed?.(table, put, dropped);
    rows += put.length + dropped.length;
    put = [];
    dropped = [];
    bytes = 0;
  }

  return {
    put(row) {
      put.push(row);
      bytes += row.row.length;
    },
    drop: (key) => void dropped.push(key),
    isFull: () => put.length + dropped.length >= MOST_ROWS || bytes >= MOST_BYTES,
    write,
    async end() {
      await write();
      return rows;
    },
  };
}

/** The rows of table `meta` that go with the state, those that it has. */
export function movedMeta({
  meta,
}: Pick<StateReading, 'meta'>): readonly (readonly [string, Buffer])[] {
  return MOVED_META.flatMap((key) => {
    const row = meta.get(key);
    return row === undefined ? [] : [[key, row] as const];
  });
}
