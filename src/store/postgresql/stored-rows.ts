/** The rows of a database as they are stored. */
import type { Client } from 'pg';
import { DamagedState, type RowKey, type TableName } from '../rows.ts';
import type { RowReader, RowWriter } from '../stored-rows.ts';
import { readingProblem } from './unreadable.ts';

/** Rows that one round trip brings. */
const FETCH_ROWS = 2000;

/** Each round trip sees its own moment, unless the connection is in a transaction that holds on to one. */
export function postgresqlRows(client: Client): RowReader {
  return {
    async *scan(table, read, after = null) {
      const { text, lowest, keyOf, given } = READINGS[table];
      let coming = fetchRows(client, text, after === null ? lowest : given(after));
      try {
        for (let isOver = false; !isOver; ) {
          const rows = await coming;
          const end = rows.at(-1);
          if (end === undefined) return;
          isOver = rows.length < FETCH_ROWS;
          // The key as it lies there: an id that is damaged may be no text. The next rows come while these are read.
          if (!isOver) coming = fetchRows(client, text, end.slice(0, -2));
          yield rows.map((row) => {
            const [value, version] = row.slice(-2);
            return read({ key: keyOf(row), version: Number(version), row: value as Buffer });
          });
        }
      } catch (cause) {
        throw readingProblem(table, cause);
      }
    },
  };
}

function fetchRows(
  client: Client,
  text: string,
  values: readonly unknown[],
): Promise<readonly unknown[][]> {
  const coming = client
    .query<unknown[]>({ text, values: [...values], rowMode: 'array' })
    .then(({ rows }) => rows);
  // Anyone who reads may have seen enough before.
  coming.catch(() => undefined);
  return coming;
}

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
    given: (key) => pairOf<number>(key),
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
      const [kind, id] = pairOf<string>(key);
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

/** Instances that follow the state learn of what it writes only by what is noted in the same transaction. */
export function postgresqlWriter(client: Client): RowWriter {
  return {
    async put(table, rows) {
      const { put, columnsOf } = WRITINGS[table];
      const keys = rows.map(({ key }) => key);
      const versions = table === 'subjects' ? [rows.map(({ version }) => version)] : [];
      const values = rows.map(({ row }) => row);
      if (rows.length > 0) await client.query(put, [...columnsOf(keys), ...versions, values]);
    },
    async drop(table, keys) {
      const { drop, columnsOf } = WRITINGS[table];
      if (keys.length > 0) await client.query(drop, [...columnsOf(keys)]);
    },
  };
}

interface Writing {
  readonly put: string;
  readonly drop: string;
  /** The columns of the keys. */
  columnsOf(keys: readonly RowKey[]): readonly (readonly unknown[])[];
}

const NONCE_COLUMNS: Writing['columnsOf'] = (keys) => {
  const pairs = keys.map((key) => pairOf<number>(key));
  return [pairs.map(([bucket]) => bucket), pairs.map(([, revision]) => revision)];
};

const WRITINGS: { readonly [Table in TableName]: Writing } = {
  meta: {
    put: `insert into mesh_na.meta (key, value) select * from unnest($1::text[], $2::bytea[])
      on conflict (key) do update set value = excluded.value`,
    drop: 'delete from mesh_na.meta where key = any($1::text[])',
    columnsOf: (keys) => [keys],
  },
  subjects: {
    put: `insert into mesh_na.subjects (kind, id, version, revision, snapshot)
        select w.kind, w.id, w.version, 0, w.snapshot
        from unnest($1::text[], $2::bytea[], $3::bigint[], $4::bytea[]) as w (kind, id, version, snapshot)
      on conflict (kind, id) do update set version = excluded.version, snapshot = excluded.snapshot`,
    drop: `delete from mesh_na.subjects as s using unnest($1::text[], $2::bytea[]) as w (kind, id)
      where s.kind = w.kind and s.id = w.id`,
    columnsOf(keys) {
      const pairs = keys.map((key) => pairOf<string>(key));
      return [pairs.map(([kind]) => kind), pairs.map(([, id]) => Buffer.from(id))];
    },
  },
  nonces: {
    put: `insert into mesh_na.nonces (bucket, revision, digests)
        select * from unnest($1::bigint[], $2::bigint[], $3::bytea[])
      on conflict (bucket, revision) do update set digests = excluded.digests`,
    drop: `delete from mesh_na.nonces as n using unnest($1::bigint[], $2::bigint[]) as w (bucket, revision)
      where n.bucket = w.bucket and n.revision = w.revision`,
    columnsOf: NONCE_COLUMNS,
  },
  // They lie in the row of their nonces.
  answers: {
    put: `update mesh_na.nonces as n set answers = w.answers
      from unnest($1::bigint[], $2::bigint[], $3::bytea[]) as w (bucket, revision, answers)
      where n.bucket = w.bucket and n.revision = w.revision`,
    drop: `update mesh_na.nonces as n set answers = null
      from unnest($1::bigint[], $2::bigint[]) as w (bucket, revision)
      where n.bucket = w.bucket and n.revision = w.revision`,
    columnsOf: NONCE_COLUMNS,
  },
  audit: {
    put: `insert into mesh_na.audit (last_entry, entries) select * from unnest($1::bigint[], $2::bytea[])
      on conflict (last_entry) do update set entries = excluded.entries`,
    drop: 'delete from mesh_na.audit where last_entry = any($1::bigint[])',
    columnsOf: (keys) => [keys],
  },
  liveness: {
    // One flush has one number, as that of a service.
    put: `insert into mesh_na.liveness (id, contact, flush)
        select w.id, w.contact, f.number
        from unnest($1::bytea[], $2::bytea[]) as w (id, contact),
          (select nextval('mesh_na.liveness_flushes') as number) as f
      on conflict (id) do update set contact = excluded.contact, flush = excluded.flush`,
    drop: `delete from mesh_na.liveness as l using unnest($1::bytea[]) as w (id) where l.id = w.id`,
    columnsOf: (keys) => [keys.map((key) => Buffer.from(String(key)))],
  },
};

export function pairOf<Part extends string | number>(key: RowKey): readonly [Part, Part] {
  if (typeof key === 'object') return key as unknown as readonly [Part, Part];
  throw new DamagedState('a key has another form than those of its table');
}
