/** Looks for damage in a part of a database, beside the instance that writes to it. */
import type { Client } from 'pg';
import { DamagedState, type RowKey, type TableName } from '../rows.ts';
import { type ScrubbedPart, type ScrubPlace, type ScrubRow, scrubRows } from '../scrub.ts';
import { type CountedTotal, countProblem } from '../totals.ts';
import type { StoreAddress } from './address.ts';
import { connectToPrimary, disconnect } from './connect.ts';
import { totalsIn } from './contents.ts';
import { assertSchema } from './schema.ts';
import { unreadableBecause } from './unreadable.ts';

/** Rejects when the database cannot be asked. */
export async function scrubDatabase(
  address: StoreAddress,
  from: ScrubPlace | null,
  parts: number,
): Promise<ScrubbedPart> {
  const { client, shown } = await connectToPrimary(address);
  try {
    const store = {
      total: await countRows(client),
      problems: await problemsOf(client, shown, from === null),
      rowsAfter: (table: TableName, after: RowKey | null) => rowsAfter(client, table, after),
      problemOf,
    };
    return await scrubRows(store, from, parts);
  } finally {
    await disconnect(client);
  }
}

/** The damage that hides the version; the service beside it has read that when it started. */
async function schemaProblem(client: Client, shown: string): Promise<string | null> {
  try {
    await assertSchema(client, shown);
    return null;
  } catch (cause) {
    if (cause instanceof DamagedState) return cause.what;
    throw cause;
  }
}

/** The rows are counted at the beginning of each round. */
async function problemsOf(
  client: Client,
  shown: string,
  isFirst: boolean,
): Promise<readonly string[]> {
  const problem = await schemaProblem(client, shown);
  if (problem !== null) return [problem];
  return isFirst ? lostRows(client) : [];
}

/** Statements that count what is read of a table, and not what an index says that there is. */
const COUNTS: readonly (readonly [CountedTotal, string])[] = [
  ['subjects', 'count(*)::float8 from mesh_na.subjects'],
  ['nonceRows', 'count(*)::float8 from mesh_na.nonces'],
  ['auditEntries', 'coalesce(max(last_entry), 0)::float8 from mesh_na.audit'],
];

/** PostgreSQL takes a page that was never written, or that a disk has lost, for an empty one, and reads on. */
async function lostRows(client: Client): Promise<readonly string[]> {
  const problems: string[] = [];
  for (const [counted, text] of COUNTS) {
    try {
      const row = await countedWithTotals(client, text);
      const problem = row?.totals
        ? countProblem(counted, row.found, totalsIn(new Map([['totals', row.totals]])))
        : 'table meta has no totals';
      if (problem !== null && !problems.includes(problem)) problems.push(problem);
    } catch (cause) {
      // Found again when the rows are read.
      if (!(cause instanceof DamagedState)) problemOf(cause);
    }
  }
  return problems;
}

interface CountedRow {
  readonly found: number;
  readonly totals: Buffer | null;
}

/** One statement, so that both are of the same moment. */
async function countedWithTotals(client: Client, text: string): Promise<CountedRow | undefined> {
  try {
    await client.query(`begin read only;
      set local enable_seqscan = on;
      set local enable_indexonlyscan = off;
      set local max_parallel_workers_per_gather = 0`);
    const { rows } = await client.query<CountedRow>(
      `select (select ${text}) as found,
        (select value from mesh_na.meta where key = 'totals') as totals`,
    );
    return rows[0];
  } finally {
    await client.query('rollback');
  }
}

function problemOf(cause: unknown): string {
  const problem = unreadableBecause(cause);
  if (problem === null) throw cause;
  return problem;
}

const COUNTED = [
  'meta',
  'subjects',
  'nonces',
  'nonces where answers is not null',
  'audit',
  'liveness',
];

/** A table that cannot be read counts for nothing here. */
async function countRows(client: Client): Promise<number> {
  let total = 0;
  for (const rows of COUNTED) {
    try {
      const text = `select count(*)::float8 as count from mesh_na.${rows}`;
      total += (await client.query<{ count: number }>(text)).rows[0]?.count ?? 0;
    } catch (cause) {
      problemOf(cause);
    }
  }
  return total;
}

/** Rows that one round trip brings. */
const FETCH_ROWS = 1000;

/** How the rows of a table are read in order; the first of them come after `lowest`. */
interface Reading {
  readonly text: string;
  readonly lowest: readonly unknown[];
  keyOf(row: readonly unknown[]): RowKey;
  /** The key as the statement takes it. */
  given(key: RowKey): readonly unknown[];
}

const LOWEST_NUMBER = '-9223372036854775808';
const NO_BYTES = Buffer.alloc(0);

/** The value is the last column but one, and the version the last. */
function selected(columns: string, value: string, version: string, source: string): string {
  return `select ${columns}, ${value}, ${version} from mesh_na.${source} limit ${FETCH_ROWS}`;
}

function nonceReading(value: string, condition: string): Reading {
  const source = `nonces where (bucket, revision) > ($1::bigint, $2::bigint)${condition} order by bucket, revision`;
  return {
    text: selected('bucket, revision', value, '0', source),
    lowest: [LOWEST_NUMBER, LOWEST_NUMBER],
    keyOf: ([bucket, revision]) => [Number(bucket), Number(revision)],
    given: (key) => key as readonly [number, number],
  };
}

const READINGS: { readonly [Table in TableName]: Reading } = {
  meta: {
    // The totals are empty until the first change.
    text: selected('key', 'value', '0', `meta where key > $1 and value <> '' order by key`),
    lowest: [''],
    keyOf: ([key]) => String(key),
    given: (key) => [key],
  },
  subjects: {
    text: selected(
      'kind, id',
      'snapshot',
      'version',
      'subjects where (kind, id) > ($1::text, $2::bytea) order by kind, id',
    ),
    lowest: ['', NO_BYTES],
    keyOf: ([kind, id]) => [String(kind), String(id)],
    given: (key) => {
      const [kind, id] = key as readonly [string, string];
      return [kind, Buffer.from(id)];
    },
  },
  nonces: nonceReading('digests', ''),
  answers: nonceReading('answers', ' and answers is not null'),
  audit: {
    text: selected(
      'last_entry',
      'entries',
      '0',
      'audit where last_entry > $1::bigint order by last_entry',
    ),
    lowest: [LOWEST_NUMBER],
    keyOf: ([last]) => Number(last),
    given: (key) => [key],
  },
  liveness: {
    text: selected('id', 'contact', '0', 'liveness where id > $1::bytea order by id'),
    lowest: [NO_BYTES],
    keyOf: ([id]) => String(id),
    given: (key) => [Buffer.from(String(key))],
  },
};

/** Each statement sees its own moment: a row is whole by itself, and nothing is held back in the database meanwhile. */
async function* rowsAfter(
  client: Client,
  table: TableName,
  after: RowKey | null,
): AsyncGenerator<ScrubRow, void> {
  const { text, lowest, keyOf, given } = READINGS[table];
  let last: readonly unknown[] = after === null ? lowest : given(after);
  for (;;) {
    const { rows } = await client.query<unknown[]>({ text, values: [...last], rowMode: 'array' });
    for (const row of rows) {
      const [value, version] = row.slice(-2);
      yield { key: keyOf(row), value: value as Buffer, version: Number(version) };
    }
    const [end] = rows.slice(-1);
    if (end === undefined || rows.length < FETCH_ROWS) return;
    // As it lies there: an id that is damaged may be no text.
    last = end.slice(0, -2);
  }
}
