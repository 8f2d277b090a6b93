/** Looks for damage in a part of a database, beside the instance that writes to it. */
import type { Client } from 'pg';
import { DamagedState, type RowKey, type TableName } from '../rows.ts';
import { type ScrubbedPart, type ScrubPlace, type ScrubRow, scrubRows } from '../scrub.ts';
import type { StoreAddress } from './address.ts';
import { connectToPrimary, disconnect } from './connect.ts';
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
    const problem = await schemaProblem(client, shown);
    const store = {
      total: await countRows(client),
      rowsAfter: (table: TableName, after: RowKey | null) => rowsAfter(client, table, after),
      problemOf,
    };
    const part = await scrubRows(store, from, parts);
    // A table that cannot be read at all is found twice.
    const isNew = problem !== null && !part.damaged.includes(problem);
    return isNew ? { ...part, damaged: [problem, ...part.damaged] } : part;
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
