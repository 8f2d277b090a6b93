/** Loads the state from PostgreSQL at a start, as of one moment. */
import type { Client } from 'pg';
import { decodeEntries, linesAfter, RECENT_AUDIT } from '../audit-rows.ts';
import { contentsOf } from '../contents.ts';
import type { Shapes } from '../shapes.ts';
import { type AuditEntry, GENESIS_HASH, type StoreContents } from '../store.ts';
import type { MetaRows } from '../stored-rows.ts';
import { assertTotal } from '../totals.ts';
import { postgresqlRows } from './stored-rows.ts';
import { readingProblem } from './unreadable.ts';

/** Rows that one round trip brings. */
const FETCH_ROWS = 2000;

export async function readMeta(client: Client): Promise<MetaRows> {
  try {
    const { rows } = await client.query<{ key: string; value: Buffer }>(
      'select key, value from mesh_na.meta',
    );
    return new Map(rows.map(({ key, value }) => [key, value]));
  } catch (cause) {
    throw readingProblem('meta', cause);
  }
}

export type PostgresqlContents = Omit<StoreContents, 'previousOwner' | 'dispose'>;

/** Reads on a connection of its own, whose transaction stays open until the last row is read. */
export async function readContents(client: Client, shapes: Shapes): Promise<PostgresqlContents> {
  return contentsAsOf(client, await beginReading(client), shapes);
}

/** What is read from now on is as of this moment. */
export async function beginReading(client: Client): Promise<MetaRows> {
  await client.query('begin isolation level repeatable read read only');
  return readMeta(client);
}

export async function contentsAsOf(
  client: Client,
  meta: MetaRows,
  shapes: Shapes,
): Promise<PostgresqlContents> {
  const contents = contentsOf(postgresqlRows(client), meta, shapes);
  return { ...contents, ...(await readAuditEnd(client, contents.auditLength)) };
}

/** The row that holds the entry with this number. */
export const AUDIT_ROW = {
  table: 'audit',
  name: 'audit_row',
  text: `select last_entry, entries from mesh_na.audit where last_entry >= $1
    order by last_entry limit 1`,
};

export interface AuditRow {
  readonly last_entry: string;
  readonly entries: Buffer;
}

/** The hash of the entry with this number; null when the row does not have it. */
export function hashIn(row: AuditRow | undefined, entry: number): string | null {
  if (row === undefined) return null;
  const last = Number(row.last_entry);
  return decodeEntries(last, row.entries).at(entry - last - 1)?.hash ?? null;
}

/** The next rows of the log: few, because one may have the entries of thousands of units. */
export const NEXT_AUDIT_ROWS = {
  table: 'audit',
  name: 'next_audit_rows',
  text: `select last_entry, entries from mesh_na.audit where last_entry > $1
    order by last_entry limit 16`,
};

/** The lines of the entries after this number in the next rows of the log. */
export function linesIn(rows: readonly AuditRow[], entry: number): readonly string[] {
  return rows.flatMap((row) => linesAfter(entry, Number(row.last_entry), row.entries));
}

/** The last entries, of those that come after the one with the number `after`. */
export async function readAuditEnd(client: Client, total: number, after = 0) {
  let recent: AuditEntry[] = [];
  let last: number | null = null;
  const backwards = `select last_entry, entries from mesh_na.audit where last_entry > ${after}
    order by last_entry desc`;
  for await (const rows of fetched<[string, Buffer]>(client, 'audit', backwards, 100)) {
    for (const [number, row] of rows) {
      last ??= Number(number);
      recent = [...decodeEntries(Number(number), row), ...recent];
      if (recent.length >= RECENT_AUDIT) break;
    }
    if (recent.length >= RECENT_AUDIT) break;
  }
  assertTotal('audit', last ?? 0, total);
  return {
    recentAudit: recent.slice(-RECENT_AUDIT),
    auditHead: recent.at(-1)?.hash ?? GENESIS_HASH,
  };
}

/** The rows of a statement, a few at a time. The cursor is named like the table. */
export async function* fetched<Row extends unknown[]>(
  client: Client,
  table: string,
  statement: string,
  atOnce = FETCH_ROWS,
): AsyncIterable<readonly Row[]> {
  let isOpen = false;
  try {
    await client.query(`declare read_${table} no scroll cursor for ${statement}`);
    isOpen = true;
    for (;;) {
      const text = `fetch ${atOnce} from read_${table}`;
      const { rows } = await client.query<Row>({ text, rowMode: 'array' });
      if (rows.length > 0) yield rows;
      if (rows.length < atOnce) break;
    }
  } catch (cause) {
    isOpen = false;
    throw readingProblem(table, cause);
  } finally {
    // Also when the reader has seen enough.
    if (isOpen) await client.query(`close read_${table}`);
  }
}
