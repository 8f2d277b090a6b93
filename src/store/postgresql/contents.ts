/** Loads the state from PostgreSQL at a start, as of one moment. Every row is checked, and missing rows are detected. */
import type { Client } from 'pg';
import { decodeEntries, linesAfter, RECENT_AUDIT } from '../audit-rows.ts';
import { DamagedState } from '../rows.ts';
import type { Shapes } from '../shapes.ts';
import {
  type AuditEntry,
  GENESIS_HASH,
  type KeptAnswer,
  type SpentNonce,
  type StoreContents,
  type StoredLiveness,
  type StoredSubject,
} from '../store.ts';
import {
  decodeAnswers,
  decodeNonces,
  decodeTimes,
  livenessReader,
  subjectReader,
} from '../table-rows.ts';
import { assertTotal, decodeTotals, type Totals } from '../totals.ts';
import { readingProblem } from './unreadable.ts';

/** Rows that one round trip brings. */
const FETCH_ROWS = 2000;

export type MetaRows = ReadonlyMap<string, Buffer>;

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

export function totalsIn(meta: MetaRows): Totals {
  const row = meta.get('totals');
  return decodeTotals(row === undefined || row.length === 0 ? undefined : row);
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
  const totals = totalsIn(meta);
  const auditEnd = await readAuditEnd(client, totals.auditEntries);
  return {
    revision: totals.revision,
    subjects: subjectsIn(client, shapes, totals.subjects),
    nonces: noncesIn(client, totals.nonceRows),
    answers: answersIn(client),
    forgottenTimes: decodeTimes('forgotten_times', meta.get('forgotten_times')),
    unstoredTimes: decodeTimes('unstored_times', meta.get('unstored_times')),
    liveness: livenessIn(client),
    auditLength: totals.auditEntries,
    ...auditEnd,
  };
}

/** Every entry of the audit log in order, of which there have to be so many. */
export async function* auditEntriesIn(
  client: Client,
  total: number,
): AsyncIterable<readonly AuditEntry[]> {
  const statement = 'select last_entry, entries from mesh_na.audit order by last_entry';
  let count = 0;
  for await (const rows of fetched<[string, Buffer]>(client, 'audit', statement)) {
    yield rows.flatMap(([last, row]) => {
      const decoded = decodeEntries(Number(last), row);
      count += decoded.length;
      if (count !== Number(last)) throw new DamagedState('an audit entry is missing');
      return decoded;
    });
  }
  assertTotal('audit', count, total);
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

export async function* subjectsIn(
  client: Client,
  shapes: Shapes,
  total: number,
): AsyncIterable<readonly StoredSubject[]> {
  const read = subjectReader(shapes);
  const statement = 'select kind, id, version, snapshot from mesh_na.subjects order by kind, id';
  let count = 0;
  for await (const rows of fetched<[string, Buffer, string, Buffer]>(
    client,
    'subjects',
    statement,
  )) {
    count += rows.length;
    yield rows.map(([kind, id, version, row]) => read(kind, id.toString(), Number(version), row));
  }
  assertTotal('subjects', count, total);
}

export async function* livenessIn(client: Client): AsyncIterable<readonly StoredLiveness[]> {
  const read = livenessReader();
  const statement = 'select id, contact from mesh_na.liveness order by id';
  for await (const rows of fetched<[Buffer, Buffer]>(client, 'liveness', statement)) {
    yield rows.map(([id, row]) => read(id.toString(), row));
  }
}

async function* noncesIn(client: Client, total: number): AsyncIterable<readonly SpentNonce[]> {
  const statement = 'select bucket, revision, digests from mesh_na.nonces';
  let count = 0;
  for await (const rows of fetched<[string, string, Buffer]>(client, 'nonces', statement)) {
    count += rows.length;
    yield rows.flatMap(([bucket, revision, row]) =>
      decodeNonces([Number(bucket), Number(revision)], row),
    );
  }
  assertTotal('nonces', count, total);
}

async function* answersIn(client: Client): AsyncIterable<readonly KeptAnswer[]> {
  const statement = `select bucket, revision, answers from mesh_na.nonces
    where answers is not null order by bucket, revision`;
  for await (const rows of fetched<[string, string, Buffer]>(client, 'answers', statement)) {
    yield rows.flatMap(([bucket, revision, row]) =>
      decodeAnswers([Number(bucket), Number(revision)], row),
    );
  }
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
    // Also when whoever reads has seen enough.
    if (isOpen) await client.query(`close read_${table}`);
  }
}
