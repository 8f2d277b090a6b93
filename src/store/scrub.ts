/** Reads the stored rows, one part after another, to find damage while the service writes them. */
import { decodeEntries } from './audit-log.ts';
import { DamagedState, decodeRow, type RowKey, TABLES, type TableName } from './rows.ts';
import { decodeAnswers, decodeNonces } from './table-rows.ts';
import type { StoredRow, TableReader } from './tables.ts';

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

export interface ScrubbedStore {
  /** How many rows there are in all tables together. */
  readonly total: number;
  /** What is known to be damaged before any row is read. */
  readonly problems: readonly string[];
  readonly tables: TableReader;
}

/** A process of its own is worth this many rows. */
const LEAST_ROWS = 1000;
const MOST_NAMED = 100;

/** The part that begins there is one of this many, if no row were added. */
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
    let isEnough = false;
    const checked = store.tables.scan(
      table,
      (row) => {
        isEnough = rows >= most;
        if (isEnough) return;
        rows += 1;
        check(table, row, after, damaged);
        after = row.key;
      },
      { after },
    );
    try {
      for await (const _batch of checked) {
        if (isEnough) return { rows, damaged, next: { table, after } };
      }
    } catch (cause) {
      if (!(cause instanceof DamagedState)) throw cause;
      note(damaged, cause.what);
    }
  }
  return { rows, damaged, next: null };
}

function check(table: TableName, row: StoredRow, before: RowKey | null, damaged: string[]): void {
  try {
    READERS[table]({ ...row, before });
  } catch (cause) {
    const what = cause instanceof DamagedState ? cause.what : `a row of table ${table}`;
    note(damaged, what);
  }
}

/** A table that cannot be read at all may be found twice. */
function note(damaged: string[], what: string): void {
  if (damaged.length < MOST_NAMED && !damaged.includes(what)) damaged.push(what);
}

interface ReadRow extends StoredRow {
  /** The key of the row before it; null when it is the first. */
  readonly before: RowKey | null;
}

type Reader = (row: ReadRow) => unknown;

const READERS: Readonly<Record<TableName, Reader>> = {
  // The schema has no checksum: a start that reads another one is refused.
  meta: ({ key, row, version }) => key === 'schema' || decodeRow('meta', key, row, version),
  subjects: ({ key, row, version }) => decodeRow('subjects', key, row, version),
  nonces: decodeNonces,
  answers: decodeAnswers,
  audit: assertContinues,
  liveness: ({ key, row }) => decodeRow('liveness', key, row),
};

/** Entries are numbered from 1 without a gap, so a row that is gone shows. */
function assertContinues({ before, ...stored }: ReadRow): void {
  const previous = Number(before ?? 0);
  const first = Number(stored.key) - decodeEntries(stored).length + 1;
  if (first === previous + 1) return;
  throw new DamagedState(`after entry ${previous}, the audit log goes on with entry ${first}`);
}
