/** Reads one part of the rows of a data folder after another, beside the service that writes to it. */
import type { GetOptions, RootDatabase } from 'lmdb';
import { decodeEntries } from '../audit-rows.ts';
import { DamagedState, decodeRow, type RowKey, TABLES, type TableName } from '../rows.ts';
import { decodeAnswers, decodeNonces } from '../table-rows.ts';
import { entriesOf, openEnvironment, openTables, type Tables } from './environment.ts';
import { checkForReading } from './folder-state.ts';

/** The row after which the next part begins. */
export interface ScrubPlace {
  readonly table: TableName;
  /** Null for the first row. */
  readonly after: RowKey | null;
}

export interface ScrubTask {
  readonly dataDir: string;
  /** Null for the first part, which checks the pages of the database as well. */
  readonly from: ScrubPlace | null;
  /** Of so many parts, if no row were added. */
  readonly parts: number;
}

export interface ScrubbedPart {
  readonly rows: number;
  /** What is damaged: at most as many sentences as anybody reads. */
  readonly damaged: readonly string[];
  /** Null after the last row. */
  readonly next: ScrubPlace | null;
}

/** A process of its own is worth this many rows. */
const LEAST_ROWS = 1000;
const MOST_NAMED = 100;

/** Rejects when there is no state, or when it cannot be opened. */
export async function scrubPart({ dataDir, from, parts }: ScrubTask): Promise<ScrubbedPart> {
  try {
    if (from === null) checkForReading(dataDir);
  } catch (cause) {
    // LMDB would follow whatever a damaged page says.
    if (cause instanceof DamagedState) return { rows: 0, damaged: [cause.what], next: null };
    throw cause;
  }
  const env = openEnvironment(dataDir, true);
  try {
    return readPart(env, from, parts);
  } finally {
    await env.close();
  }
}

function readPart(env: RootDatabase, from: ScrubPlace | null, parts: number): ScrubbedPart {
  const tables = openTables(env);
  const transaction = env.useReadTransaction();
  try {
    const total = TABLES.reduce((sum, table) => sum + entriesOf(tables, table), 0);
    const most = Math.max(LEAST_ROWS, Math.ceil(total / parts));
    const damaged: string[] = [];
    let rows = 0;
    const first = from === null ? 0 : TABLES.indexOf(from.table);
    for (const table of TABLES.slice(first)) {
      let after = from?.table === table ? from.after : null;
      try {
        for (const row of rowsAfter(tables, table, after, transaction)) {
          if (rows >= most) return { rows, damaged, next: { table, after } };
          rows += 1;
          after = row.key;
          check(table, row, damaged);
        }
      } catch (cause) {
        const problem = cause instanceof Error ? cause.message : String(cause);
        note(damaged, `table ${table} cannot be read (${problem})`);
      }
    }
    return { rows, damaged, next: null };
  } finally {
    transaction.done();
  }
}

interface Row {
  readonly key: RowKey;
  readonly value: Buffer;
  readonly version?: number;
}

function rowsAfter(
  tables: Tables,
  table: TableName,
  after: RowKey | null,
  transaction: GetOptions['transaction'],
): Iterable<Row> {
  const options = { versions: true, ...(transaction && { transaction }) };
  const range = after === null ? options : { ...options, start: after, exclusiveStart: true };
  return tables[table].getRange(range as object) as unknown as Iterable<Row>;
}

function check(table: TableName, { key, value, version = 0 }: Row, damaged: string[]): void {
  try {
    READERS[table](key, value, version);
  } catch (cause) {
    const what = cause instanceof DamagedState ? cause.what : `a row of table ${table}`;
    note(damaged, what);
  }
}

function note(damaged: string[], what: string): void {
  if (damaged.length < MOST_NAMED) damaged.push(what);
}

type Reader = (key: RowKey, row: Buffer, version: number) => unknown;

const READERS: Readonly<Record<TableName, Reader>> = {
  // The schema has no checksum: a start that reads another one is refused.
  meta: (key, row, version) => key === 'schema' || decodeRow('meta', key, row, version),
  subjects: (key, row, version) => decodeRow('subjects', key, row, version),
  nonces: (key, row) => decodeNonces(key as [number, number], row),
  answers: (key, row) => decodeAnswers(key as [number, number], row),
  audit: (key, row) => decodeEntries(key as number, row),
  liveness: (key, row) => decodeRow('liveness', key, row),
};
