/** Opens the database of a data folder, and reads and writes the stored rows of its tables. */
import { mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { Database, GetOptions, RootDatabase } from 'lmdb';
import { DamagedState, type RowKey, type TableName } from '../rows.ts';
import type { TableChange, Tables } from '../tables.ts';
import { whileNobodyCommits } from './openings.ts';

/** Required, because the module that an `import` would load consists of more files, which take 25 ms longer. */
const { open }: typeof import('lmdb') = createRequire(import.meta.url)('lmdb');

const MAX_DATABASES = 16;
/** This reserves address space, not memory. If the map grew with the file, its pages would be counted twice. */
const MAP_SIZE = 64 * 1024 ** 3;

/**
 * Opens the environment below `dataDir` while nobody commits to it; its files must have been checked before. Throws if
 * others keep committing for several seconds.
 */
export function openEnvironment(dataDir: string, readOnly: boolean): RootDatabase {
  const path = join(dataDir, 'state');
  if (!readOnly) mkdirSync(path, { recursive: true, mode: 0o700 });
  // Without overlapping sync, the promise of a write resolves when it is on disk, as the port requires.
  const options = { path, maxDbs: MAX_DATABASES, mapSize: MAP_SIZE, overlappingSync: false };
  return whileNobodyCommits(dataDir, () => open({ ...options, readOnly }));
}

/** Rows are read and written as bytes. LMDB returns a view of a larger buffer that it reuses. */
const COPIES = {
  encode: (row: Buffer) => row,
  decode: (row: Uint8Array) => Buffer.from(row.subarray(0, row.length)),
};

/** A row is valid only until the next read, so that reading a million rows needs no copies. */
const VIEWS = {
  encode: (row: Buffer) => row,
  decode: (row: Uint8Array) => Buffer.from(row.buffer, row.byteOffset, row.length),
};

const VERSIONED: ReadonlySet<TableName> = new Set(['meta', 'subjects']);

function openTable<Key extends string | number | [string, string] | [number, number]>(
  env: RootDatabase,
  name: TableName,
  encoder = VIEWS,
): Database<Buffer, Key> {
  const options = { name, useVersions: VERSIONED.has(name), encoder };
  return env.openDB<Buffer, Key>(options);
}

/** The table that determines how the others are read. */
export function openMeta(env: RootDatabase): Database<Buffer, string> {
  return openTable<string>(env, 'meta', COPIES);
}

export function openTables(env: RootDatabase) {
  return {
    /** Owner of the store, owner of the state, shapes, and totals of the other tables. */
    meta: openMeta(env),
    /** Keyed by kind and id: the snapshot without the names of its members, which its shape contains. */
    subjects: openTable<[string, string]>(env, 'subjects'),
    /**
     * Keyed by the time when the nonces may be forgotten and the last revision of the flush: the digests of the
     * nonces.
     */
    nonces: openTable<[number, number]>(env, 'nonces'),
    /** Keyed like the nonces: the answers that are kept with them. */
    answers: openTable<[number, number]>(env, 'answers'),
    /**
     * Keyed by the number of the last entry: the entries of a flush in order, each as one line of hash and hashed
     * text.
     */
    audit: openTable<number>(env, 'audit'),
    /** Keyed by certificate id: last contact, status, address and newest signed timestamp. */
    liveness: openTable<string>(env, 'liveness'),
    /** Keyed by the length of the time and the slot in its ring: the values of a row of the history. */
    history: openTable<[number, number]>(env, 'history'),
  };
}

export type OpenTables = ReturnType<typeof openTables>;

/**
 * The key of a subject as LMDB has to get it. Before characters up to U+0004 it writes a mark, but not in texts of 64
 * characters or more, where they would end the text; when it reads, it removes the marks from all.
 */
export function subjectKey([kind, id]: readonly [string, string]): [string, string] {
  const marked = (char: string) => (char > '\u0004' ? char : `\u0004${char}`);
  return [kind, id.length < 64 ? id : id.replace(/\p{Cc}/gu, marked)];
}

type Transaction = NonNullable<GetOptions['transaction']>;

/** Large enough to keep iteration cheap, small enough for the batches to be garbage-collected early. */
const BATCH_ROWS = 500;

/** Without a transaction, each row is returned as it is at the time of reading. */
export function lmdbTables(opened: OpenTables, transaction: Transaction | null = null): Tables {
  return {
    scan(table, read, { after = null, atOnce = BATCH_ROWS } = {}) {
      const range = {
        // LMDB would return arbitrary versions for a table that has none.
        versions: VERSIONED.has(table),
        ...(transaction !== null && { transaction }),
        ...(after !== null && { start: after, exclusiveStart: true }),
      };
      const rows = opened[table].getRange(range as object) as unknown as Iterable<Entry>;
      return inBatches(table, atOnce, rows, ({ key, value, version = 0 }) =>
        read({ key, version, row: value }),
      );
    },
    write: async (changes) => writeAtOnce(opened, changes),
  };
}

interface Entry {
  readonly key: RowKey;
  readonly value: Buffer;
  readonly version?: number;
}

async function* inBatches<Row, Item>(
  table: TableName,
  size: number,
  rows: Iterable<Row>,
  read: (row: Row) => Item,
): AsyncGenerator<readonly Item[], void> {
  let batch: Item[] = [];
  try {
    for (const row of rows) {
      batch.push(read(row));
      if (batch.length < size) continue;
      yield batch;
      batch = [];
    }
  } catch (cause) {
    if (cause instanceof DamagedState) throw cause;
    const problem = cause instanceof Error ? cause.message : String(cause);
    throw new DamagedState(`table ${table} cannot be read (${problem})`);
  }
  if (batch.length > 0) yield batch;
}

/** Writes all changes in one transaction, which is on disk when this returns. */
export function writeAtOnce(opened: OpenTables, changes: readonly TableChange[]): void {
  opened.meta.transactionSync(() => {
    for (const { table, put } of changes) {
      const written = opened[table] as unknown as WritableTable;
      for (const { key: given, version, row } of put) {
        const key = table === 'subjects' ? subjectKey(given as readonly [string, string]) : given;
        if (VERSIONED.has(table)) written.putSync(key, row, version);
        else written.putSync(key, row);
      }
    }
  });
}

interface WritableTable {
  putSync(key: RowKey, row: Buffer, version?: number): unknown;
}
