/** Reads the stored rows, one part after another, to find damage while the service writes them. */
import { decodeEntries } from './audit-log.ts';
import { DamagedState, decodeRow, type RowKey, TABLES, type TableName } from './rows.ts';
import { decodeAnswers, decodeHistory, decodeNonces } from './table-rows.ts';
import type { StoredRow, TableReader } from './tables.ts';

/** The row after which the next part begins. */
export interface ScrubPlace {
  readonly table: TableName;
  /** Null for the first row. */
  readonly after: RowKey | null;
}

export interface ScrubbedPart {
  readonly rows: number;
  /** Descriptions of the damage, limited to as many as anyone would read. */
  readonly damaged: readonly string[];
  /** Null after the last row. */
  readonly next: ScrubPlace | null;
}

export interface ScrubbedStore {
  /** The number of rows in all tables. */
  readonly total: number;
  /** Damage that is known before any row is read. */
  readonly problems: readonly string[];
  readonly tables: TableReader;
}

/** Fewer rows are not worth a separate process. */
const LEAST_ROWS = 1000;
const MOST_NAMED = 100;

/** Checks the part that begins at `from`. If no rows were added, there would be `parts` parts. */
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

/** A table that cannot be read at all may be reported twice. */
function note(damaged: string[], what: string): void {
  if (damaged.length < MOST_NAMED && !damaged.includes(what)) damaged.push(what);
}

interface ReadRow extends StoredRow {
  /** The key of the previous row; null for the first one. */
  readonly before: RowKey | null;
}

type Reader = (row: ReadRow) => unknown;

const READERS: Readonly<Record<TableName, Reader>> = {
  // The schema version has no checksum, but the service refuses to start with any other version.
  meta: ({ key, row, version }) => key === 'schema' || decodeRow('meta', key, row, version),
  subjects: ({ key, row, version }) => decodeRow('subjects', key, row, version),
  nonces: decodeNonces,
  answers: decodeAnswers,
  audit: assertContinues,
  liveness: ({ key, row }) => decodeRow('liveness', key, row),
  history: decodeHistory,
};

/** Entries are numbered from 1 without gaps, so a missing row is detected. */
function assertContinues({ before, ...stored }: ReadRow): void {
  const previous = Number(before ?? 0);
  const first = Number(stored.key) - decodeEntries(stored).length + 1;
  if (first === previous + 1) return;
  throw new DamagedState(`after entry ${previous}, the audit log goes on with entry ${first}`);
}
