/** The files of the store, and what their tables hold. */
import { closeSync, existsSync, mkdirSync, openSync, readSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { open, type RootDatabase } from 'lmdb';
import { Packr } from 'msgpackr';
import type { StoredSnapshot } from './shapes.ts';

const MAX_DATABASES = 16;
/** Address space, not memory: a map that grows with the file would count its pages a second time. */
const MAP_SIZE = 64 * 1024 ** 3;

/** Kind and id of each subject. */
type Touched = readonly (readonly [string, string])[];

/** Opens the environment below `dataDir`; throws when what lies there is no database. */
export function openEnvironment(dataDir: string, readOnly: boolean): RootDatabase {
  const path = join(dataDir, 'state');
  assertIsDatabase(join(path, 'data.mdb'));
  if (!readOnly) mkdirSync(path, { recursive: true, mode: 0o700 });
  // Without overlapping sync a write's promise resolves when it is on disk, which is what we promise.
  return open({ path, maxDbs: MAX_DATABASES, mapSize: MAP_SIZE, overlappingSync: false, readOnly });
}

/** LMDB maps the file into memory unseen, and one that is no database ends the process. */
function assertIsDatabase(path: string): void {
  if (!existsSync(path) || statSync(path).size === 0) return;
  const head = Buffer.alloc(MAGIC_AT + MAGIC.length);
  const file = openSync(path, 'r');
  try {
    readSync(file, head, 0, head.length, 0);
  } finally {
    closeSync(file);
  }
  if (!head.subarray(MAGIC_AT).equals(MAGIC)) {
    throw new Error('The state in the data directory is not a database of this program');
  }
}

/** LMDB's magic number behind the header of the first page, as little-endian machines write it. */
const MAGIC = Buffer.from('dec0efbe', 'hex');
const MAGIC_AT = 24;

/** How snapshots are encoded. */
export const packr = new Packr({ useRecords: false });
const SUBJECTS = { name: 'subjects', useVersions: true, encoder: packr };

export function openDatabases(env: RootDatabase) {
  return {
    meta: env.openDB<unknown, string>({ name: 'meta', useVersions: true }),
    subjects: env.openDB<StoredSnapshot, [string, string]>(SUBJECTS),
    /** When the nonces may be forgotten, and the last revision of the flush: their digests. */
    nonces: env.openDB<readonly string[], [number, number]>({ name: 'nonces' }),
    /** Number of the last entry: the entries of a flush in order, each a line of hash and hashed text. */
    audit: env.openDB<string, number>({ name: 'audit', encoding: 'string' }),
    /** Last revision of a flush: the subjects that each of its units touched. */
    changes: env.openDB<readonly Touched[], number>({ name: 'changes' }),
    liveness: env.openDB<[number, string, string, number], string>({ name: 'liveness' }),
  };
}
