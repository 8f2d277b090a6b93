/** Reads the stored rows, one part after another, to find damage beside the service that writes them. */
import { decodeEntries } from './audit-rows.ts';
import { DamagedState, decodeRow, type RowKey, TABLES, type TableName } from './rows.ts';
import { decodeAnswers, decodeNonces } from './table-rows.ts';

/** The row after which the next part begins. */
export interface ScrubPlace {
  readonly table: TableName;
  /** Null for the first row. */
  readonly after: RowKey | null;
}

export interface ScrubbedPart {
  readonly rows: number;
  /** What is damaged: at most as many sentences as anybody reads. */
  readonly damaged: readonly string[];
  /** Null after the last row. */
  readonly next: ScrubPlace | null;
}

export interface ScrubRow {
  readonly key: RowKey;
  readonly value: Buffer;
  readonly version?: number;
}

export interface ScrubbedStore {
  /** How many rows there are in all tables together. */
  readonly total: number;
  /** What is known to be damaged before any row is read. */
  readonly problems: readonly string[];
  /** The rows behind the one with this key, in order; all of them when it is null. */
  rowsAfter(table: TableName, after: RowKey | null): Iterable<ScrubRow> | AsyncIterable<ScrubRow>;
  /** What is wrong with the table that could not be read; throws the cause when that says nothing of the table. */
  problemOf(cause: unknown): string;
}

/** A process of its own is worth this many rows. */
const LEAST_ROWS = 1000;
const MOST_NAMED = 100;

/** The part that begins there is one of so many, if no row were added. */
export async function scrubRows(
  store: ScrubbedStore,
  from: ScrubPlace | null,
  parts: number,
): Promise<ScrubbedPart> {
  const most = Math.max(LEAST_ROWS, Math.ceil(store.total / parts));
  const damaged = [...store.problems];
  let rows = 0;
  const first = from === null ? 0 : TABLES.indexOf(from.table);
  for (const table of TABLES.slice(first)) {
    let after = from?.table === table ? from.after : null;
    try {
      for await (const row of store.rowsAfter(table, after)) {
        if (rows >= most) return { rows, damaged, next: { table, after } };
        rows += 1;
        check(table, row, after, damaged);
        after = row.key;
      }
    } catch (cause) {
      note(damaged, `table ${table} cannot be read (${store.problemOf(cause)})`);
    }
  }
  return { rows, damaged, next: null };
}

function check(
  table: TableName,
  { key, value, version = 0 }: ScrubRow,
  before: RowKey | null,
  damaged: string[],
): void {
  try {
    READERS[table]({ key, value, version, before });
  } catch (cause) {
    const what = cause instanceof DamagedState ? cause.what : `a row of table ${table}`;
    note(damaged, what);
  }
}

/** A table that cannot be read at all may be found twice. */
function note(damaged: string[], what: string): void {
  if (damaged.length < MOST_NAMED && !damaged.includes(what)) damaged.push(what);
}

interface ReadRow extends Required<ScrubRow> {
  /** The key of the row before it; null when it is the first. */
  readonly before: RowKey | null;
}

type Reader = (row: ReadRow) => unknown;

const READERS: Readonly<Record<TableName, Reader>> = {
  // The schema has no checksum: a start that reads another one is refused.
  meta: ({ key, value, version }) => key === 'schema' || decodeRow('meta', key, value, version),
  subjects: ({ key, value, version }) => decodeRow('subjects', key, value, version),
  nonces: ({ key, value }) => decodeNonces(key as [number, number], value),
  answers: ({ key, value }) => decodeAnswers(key as [number, number], value),
  audit: ({ key, value, before }) => readEntries(key as number, value, before),
  liveness: ({ key, value }) => decodeRow('liveness', key, value),
};

/** Entries are numbered from 1 without a gap, so a row that is gone shows. */
function readEntries(last: number, row: Buffer, before: RowKey | null): void {
  const previous = Number(before ?? 0);
  const first = last - decodeEntries(last, row).length + 1;
  if (first === previous + 1) return;
  throw new DamagedState(`after entry ${previous}, the audit log goes on with entry ${first}`);
}
