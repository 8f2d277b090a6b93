/** Checks that LMDB can safely open the state files in a data directory. */
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { assertArrived } from '../move/marks.ts';
import { assertNeverUsed, unreadable, unwritable } from '../usage-mark.ts';
import { MOST_UNWRITTEN, readMetas, unfinishedMeta } from './metas.ts';
import { metaNumbers } from './pages.ts';
import { checkStructure, checkStructureInUse, checkTrees } from './structure.ts';

export const DATABASE_FILE = 'state/data.mdb';
const DATABASE_LOCK_FILE = 'state/lock.mdb';
/** A state that is being moved into the data folder, until it is complete. */
export const ARRIVING = '.arriving';
const PROBE_FILE = 'state/probe';
/** Several times the size that a first start writes. */
const PROBE_BYTES = 262_144;

/** Throws a one-sentence error if LMDB could not open the files safely. */
export function checkFiles(dataDir: string): void {
  const database = join(dataDir, DATABASE_FILE);
  if (!existsSync(database)) {
    assertArrived(isArriving(dataDir), 'the data directory');
    assertNeverUsed(dataDir, foundInstead('missing'));
    assertDiskWorks(dataDir);
    return;
  }
  assertDiskWorks(dataDir);
  for (const name of [DATABASE_FILE, DATABASE_LOCK_FILE]) assertWritable(join(dataDir, name));
  if (statSync(database).size === 0) assertNeverUsed(dataDir, foundInstead('empty'));
  else {
    finishWrite(database);
    checkStructure(database, 'end');
  }
}

/**
 * For read-only use, even while a server is running on the files. Returns false if the database could not be checked
 * because it kept changing. Throws like `checkFiles`, and also if there is no database.
 */
export function checkForReading(dataDir: string): boolean {
  const database = join(dataDir, DATABASE_FILE);
  assertState(dataDir);
  try {
    return checkStructureInUse(database);
  } catch (cause) {
    throw isSystemError(cause) ? unreadable(database, cause) : cause;
  }
}

/** Whether a state is being moved into the folder, or that was interrupted. */
export function isArriving(dataDir: string): boolean {
  return existsSync(join(dataDir, ARRIVING)) && !existsSync(join(dataDir, DATABASE_FILE));
}

function assertState(dataDir: string): void {
  assertDatabase(dataDir);
  if (statSync(join(dataDir, DATABASE_FILE)).size === 0) throw new Error(noState(dataDir));
}

/** Throws if the folder has no database file, not even an empty one, or if this user cannot see it. */
export function assertDatabase(dataDir: string): void {
  const database = join(dataDir, DATABASE_FILE);
  try {
    statSync(database);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') throw new Error(noState(dataDir));
    throw unreadable(database, cause);
  }
}

function noState(dataDir: string): string {
  return `${dataDir} holds no state of an authority`;
}

function isSystemError(cause: unknown): boolean {
  return cause instanceof Error && 'syscall' in cause;
}

function foundInstead(found: 'missing' | 'empty'): string {
  return `${DATABASE_FILE} is ${found}; restore it from a backup`;
}

/** LMDB kills the process with a signal if its files cannot be created or extended while it opens them. */
function assertDiskWorks(dataDir: string): void {
  const path = join(dataDir, PROBE_FILE);
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    writeFileSync(path, Buffer.alloc(PROBE_BYTES, 1), { mode: 0o600, flush: true });
    rmSync(path);
  } catch (cause) {
    throw unwritable(path, cause);
  }
}

/** LMDB also kills the process if it cannot write one of its files. */
function assertWritable(path: string): void {
  if (!existsSync(path)) return;
  try {
    closeSync(openSync(path, 'r+'));
  } catch (cause) {
    throw unwritable(path, cause);
  }
}

/**
 * Finishes a transaction whose last step failed: its trees are on disk, but not the number that makes them
 * current. It was never acknowledged, but may be kept, and must be: damage to the number of an acknowledged
 * transaction looks the same.
 *
 * Nothing else may have the file open. Throws `DamagedState` when the trees are not sound.
 */
function finishWrite(path: string): void {
  const file = openSync(path, 'r+');
  try {
    const { metas, pages } = readMetas(file);
    const unfinished = unfinishedMeta(metas, pages);
    if (unfinished === null) return;
    const { page, meta, transaction } = unfinished;
    // The number of the last page was not written, so an upper bound takes its place.
    const most = { ...meta, transaction, lastPage: pages.pages + MOST_UNWRITTEN };
    const lastPage = checkTrees(pages, most, 'whole');
    const { bytes, at } = metaNumbers({ transaction, lastPage });
    writeSync(file, bytes, 0, bytes.length, page * pages.pageSize + at);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
