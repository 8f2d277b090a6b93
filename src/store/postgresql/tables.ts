/** The tables of a database: the columns that hold their rows, and the statements that read and write them. */
import type { Client } from 'pg';
import { type MetaRows, readMeta } from '../meta-rows.ts';
import { DamagedState, type RowKey, type TableName } from '../rows.ts';
import type { StoredRow, TableReader, Tables } from '../tables.ts';
import { readingProblem } from './connect.ts';
import type { Question } from './writing.ts';

/** How the database stores one of our tables. */
interface Layout {
  readonly name: string;
  /** Columns and their types. */
  readonly key: Readonly<Record<string, 'text' | 'bytea' | 'bigint'>>;
  readonly value: string;
  readonly isVersioned?: boolean;
  /** A condition for the rows that belong to our table; all of them if absent. */
  readonly condition?: string;
  /** Whether the value is a column in the rows of another one of our tables. */
  readonly isPart?: boolean;
  /** An additional column, and its value in rows that are put. */
  readonly other?: readonly [name: string, value: string];
}

const NONCE_KEY = { bucket: 'bigint', revision: 'bigint' } as const;
const ANSWERS = { value: 'answers', condition: 'answers is not null', isPart: true };
/** All rows of a statement get the same number, like those of a flush by a service. */
const NEXT_FLUSH = `(select nextval('mesh_na.liveness_flushes'))`;

const TABLES: { readonly [Table in TableName]: ReturnType<typeof statementsOn> } = {
  // The totals are empty until the first change.
  meta: statementsOn({
    name: 'meta',
    key: { key: 'text' },
    value: 'value',
    condition: `value <> ''`,
  }),
  subjects: statementsOn({
    name: 'subjects',
    key: { kind: 'text', id: 'bytea' },
    value: 'snapshot',
    isVersioned: true,
    other: ['revision', '0'],
  }),
  nonces: statementsOn({ name: 'nonces', key: NONCE_KEY, value: 'digests' }),
  answers: statementsOn({ name: 'nonces', key: NONCE_KEY, ...ANSWERS }),
  audit: statementsOn({ name: 'audit', key: { last_entry: 'bigint' }, value: 'entries' }),
  liveness: statementsOn({
    name: 'liveness',
    key: { id: 'bytea' },
    value: 'contact',
    other: ['flush', NEXT_FLUSH],
  }),
  history: statementsOn({
    name: 'history',
    key: { seconds: 'bigint', slot: 'bigint' },
    value: 'counted',
  }),
};

/** Generates the statements on a table. Keys and rows are passed as one list per column. */
function statementsOn(layout: Layout) {
  const { key, value, isVersioned = false, condition = 'true', isPart = false, other } = layout;
  const names = Object.keys(key).join(', ');
  const types = Object.values(key);
  const columns = isVersioned ? [value, 'version'] : [value];
  const lists = [...types, 'bytea', 'bigint'].map((type, index) => `$${index + 1}::${type}[]`);
  const keys = `unnest(${lists.slice(0, types.length)}) as w (${names})`;
  const rows = `unnest(${lists.slice(0, types.length + columns.length)}) as w (${names}, ${columns})`;
  const isSame = Object.keys(key)
    .map((name) => `t.${name} = w.${name}`)
    .join(' and ');
  const table = `mesh_na.${layout.name} as t`;
  const written = other === undefined ? columns : [...columns, other[0]];
  /** Selects the columns of the key, the value and the version. */
  const select = (from: string) =>
    `select ${names}, ${value}, ${isVersioned ? 'version' : '0'} from ${from} where ${condition}`;
  return {
    types,
    names,
    isVersioned,
    select: select(table),
    selectSome: `${select(`${table} join ${keys} using (${names})`)} order by ${names}`,
    put: isPart
      ? `update ${table} set ${value} = w.${value} from ${rows} where ${isSame}`
      : `insert into ${table} (${names}, ${written})
          select w.*${other === undefined ? '' : `, ${other[1]}`} from ${rows}
          on conflict (${names}) do update set ${written.map((name) => `${name} = excluded.${name}`)}`,
  };
}

/** Rows per round trip. */
const FETCH_ROWS = 2000;

interface RowQuestion extends Question {
  readonly rowMode: 'array';
}

/** `ask` sends a query to the database. */
export function tableReader(
  ask: (question: RowQuestion, values: readonly unknown[]) => Promise<readonly unknown[][]>,
): TableReader {
  function fetchRows(table: TableName, after: readonly unknown[], limit: number) {
    const { types, names, select } = TABLES[table];
    const isFirst = after.length === 0;
    const behind = types.map((type, index) => `$${index + 1}::${type}`);
    const range = isFirst ? '' : `and (${names}) > (${behind})`;
    const text = `${select} ${range} order by ${names} limit ${limit}`;
    const name = `${table}_${limit}${isFirst ? '' : '_after'}`;
    const coming = ask({ table, name, text, rowMode: 'array' }, after);
    // The reader may stop before it needs these rows.
    coming.catch(() => undefined);
    return coming;
  }

  return {
    async *scan(table, read, { after = null, atOnce } = {}) {
      const limit = atOnce ?? FETCH_ROWS;
      const keyLength = TABLES[table].types.length;
      let coming = fetchRows(table, after === null ? [] : partsOf(table, after), limit);
      try {
        for (let isOver = false; !isOver; ) {
          const rows = await coming;
          const end = rows.at(-1);
          if (end === undefined) return;
          isOver = rows.length < limit;
          // Uses the key as stored, because a damaged id may not be valid text.
          const fetchNext = () => fetchRows(table, end.slice(0, keyLength), limit);
          // Fetches the next rows while these are read, unless they may not be needed.
          if (!isOver && atOnce === undefined) coming = fetchNext();
          yield rows.map((row) => read(storedRow(table, row)));
          if (!isOver && atOnce !== undefined) coming = fetchNext();
        }
      } catch (cause) {
        throw readingProblem(table, cause);
      }
    },
  };
}

/** Each round trip sees its own snapshot, unless the connection is in a transaction that keeps one. */
export function postgresqlTables(client: Client): Tables {
  return {
    ...tableReader(async ({ text, rowMode }, values) => {
      return (await client.query<unknown[]>({ text, values: [...values], rowMode })).rows;
    }),
    async write(changes) {
      for (const { table, put } of changes) {
        const statements = TABLES[table];
        if (put.length === 0) continue;
        const columns = keyLists(
          table,
          put.map(({ key }) => key),
        );
        columns.push(put.map(({ row }) => row));
        if (statements.isVersioned) columns.push(put.map(({ version }) => version));
        await client.query(statements.put, columns);
      }
    },
  };
}

export function readMetaOf(client: Client): Promise<MetaRows> {
  return readMeta(postgresqlTables(client));
}

/** Begins a transaction in which everything that is read is as of this moment. */
export async function beginReading(client: Client): Promise<MetaRows> {
  await client.query('begin isolation level repeatable read read only');
  return readMetaOf(client);
}

/** The existing rows with these keys, in order. */
export async function readRows<Item>(
  client: Client,
  table: TableName,
  keys: readonly RowKey[],
  read: (row: StoredRow) => Item,
): Promise<readonly Item[]> {
  if (keys.length === 0) return [];
  const { selectSome: text } = TABLES[table];
  const values = keyLists(table, keys);
  const { rows } = await client.query<unknown[]>({ text, values, rowMode: 'array' });
  return rows.map((row) => read(storedRow(table, row)));
}

function keyLists(table: TableName, keys: readonly RowKey[]): unknown[][] {
  const parts = keys.map((key) => partsOf(table, key));
  return TABLES[table].types.map((_type, index) => parts.map((part) => part[index]));
}

/** The parts of a key as parameters of a statement. */
function partsOf(table: TableName, key: RowKey): readonly unknown[] {
  const { types } = TABLES[table];
  const parts = typeof key === 'object' ? key : [key];
  if (parts.length !== types.length) {
    throw new DamagedState('a key has another form than those of its table');
  }
  return parts.map((part, index) => (types[index] === 'bytea' ? Buffer.from(String(part)) : part));
}

function storedRow(table: TableName, columns: readonly unknown[]): StoredRow {
  const [first, second] = TABLES[table].types;
  const part = (type: string | undefined, at: number) =>
    type === 'bigint' ? Number(columns[at]) : String(columns[at]);
  const [value, version] = columns.slice(-2);
  const key = second === undefined ? part(first, 0) : [part(first, 0), part(second, 1)];
  return { key: key as RowKey, version: Number(version), row: value as Buffer };
}
