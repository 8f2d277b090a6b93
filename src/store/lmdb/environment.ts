/**
 * The files of the store, and its tables. The formats of rows are documented where they are read and
 * written.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type Database, open, type RootDatabase } from 'lmdb';
import type { TableName } from '../rows.ts';
import { whileNobodyCommits } from './openings.ts';

const MAX_DATABASES = 16;
/** Address space, not memory: a map that is enlarged with the file would count its pages a second time. */
const MAP_SIZE = 64 * 1024 ** 3;

/**
 * Opens the environment below `dataDir`, whose files were checked before, when nobody commits to it. Throws when that
 * does not come to pass within seconds.
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

/** A row that was read is valid until the next read, so that a million rows need no copies. */
const VIEWS = {
  encode: (row: Buffer) => row,
  decode: (row: Uint8Array) => Buffer.from(row.buffer, row.byteOffset, row.length),
};

/** The table that says how the others are read. */
export function openMeta(env: RootDatabase): Database<Buffer, string> {
  const options = { name: 'meta', useVersions: true, encoder: COPIES };
  return env.openDB<Buffer, string>(options);
}

export function openTables(env: RootDatabase) {
  function table<Key extends string | number | [string, string] | [number, number]>(
    name: TableName,
    { encoder = VIEWS, useVersions = false } = {},
  ): Database<Buffer, Key> {
    const options = { name, useVersions, encoder };
    return env.openDB<Buffer, Key>(options);
  }

  return {
    /** Owner of the store, owner of the state, shapes, and totals of the other tables. */
    meta: openMeta(env),
    /** Kind and id: the snapshot in its shape. */
    subjects: table<[string, string]>('subjects', { useVersions: true }),
    /** When the nonces may be forgotten, and the last revision of the flush: their digests. */
    nonces: table<[number, number]>('nonces'),
    /** The answers that are kept with the nonces of the same key. */
    answers: table<[number, number]>('answers'),
    /** Number of the last entry: the entries of a flush in order, each a line of hash and hashed text. */
    audit: table<number>('audit'),
    /** Id of the certificate: last contact, status, address, newest signed timestamp. */
    liveness: table<string>('liveness'),
  };
}

export type Tables = ReturnType<typeof openTables>;

/** The number of rows. */
export function entriesOf(tables: Tables, table: TableName): number {
  return (tables[table].getStats() as { readonly entryCount?: number }).entryCount ?? 0;
}
