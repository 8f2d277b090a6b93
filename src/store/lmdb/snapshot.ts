/**
 * The rows of a database as of one transaction, and how they differ from those of an earlier one, beside the service
 * that writes. LMDB never changes a page that a reader may need: it writes a changed one, and those above it, to another
 * place. So a page that both transactions have is the same in both, and what has changed is found without reading the rest.
 */
import { closeSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { bufferToKeyValue, type GetOptions, type RootDatabase } from 'lmdb';
import { DamagedState, type RowKey, type TableName } from '../rows.ts';
import type { RowChange } from '../trail/ports.ts';
import { openEnvironment, openTables, type Tables } from './environment.ts';
import { DATABASE_FILE, DATABASE_LOCK_FILE } from './folder-state.ts';
import { currentMeta, readMetas } from './metas.ts';
import {
  childAt,
  damaged,
  damagedPage,
  dataAt,
  dataSize,
  HAS_VERSIONS,
  HOLDS_A_TREE,
  isOverflowStart,
  keyAt,
  MAX_DEPTH,
  type Meta,
  NO_PAGE,
  nodeAt,
  nodeFlags,
  nodesOf,
  ON_OVERFLOW_PAGES,
  overflowOf,
  type PageFile,
  readRun,
  readTree,
  TREE_RECORD,
  type TreeRecord,
  versioned,
} from './pages.ts';

export interface Snapshot {
  readonly tables: Tables;
  readonly transaction: NonNullable<GetOptions['transaction']>;
  /** The rows that are not as they were in the earlier snapshot, in the order of their keys; all of them without one. */
  changes(table: TableName, since: Snapshot | null): Iterable<RowChange>;
  /** The numbers of the leaves of a table, in the order of its rows. */
  leaves(table: TableName): readonly number[];
  /** Reads the rows on a leaf. */
  rowsOn(table: TableName, leaf: number): readonly StoredRow[];
  close(): void;
}

interface StoredRow {
  /** The bytes by which rows are ordered. */
  readonly key: Buffer;
  /** The version, if the table has versions, and the row. */
  readonly data: Buffer;
}

/** A database that one process reads again and again while another writes it. */
export interface SnapshotReader {
  /** The rows as they are now. Rejects with one clear sentence when the database is damaged, or changes all the while. */
  next(): Promise<Snapshot>;
  /** Call when its snapshots are closed. */
  close(): Promise<void>;
}

/** How often a moment is looked for in which no transaction ends, and the pause between two looks, milliseconds. */
const ATTEMPTS = 5000;
const LOOK_MS = 1;

/** Each opening of a database that another process writes writes to its lock file, so it is opened once. */
export function openSnapshots(dataDir: string): SnapshotReader {
  const env = openEnvironment(dataDir, true);
  const files: number[] = [];

  function opened(name: string): number {
    const file = openSync(join(dataDir, name), 'r');
    files.push(file);
    return file;
  }

  async function close(): Promise<void> {
    await env.close();
    for (const file of files.splice(0)) closeSync(file);
  }

  try {
    const tables = openTables(env);
    const sight = {
      env,
      tables,
      file: opened(DATABASE_FILE),
      lockFile: opened(DATABASE_LOCK_FILE),
    };
    return { next: () => nextSnapshot(sight), close };
  } catch (cause) {
    void close();
    throw cause;
  }
}

interface Sight {
  readonly env: RootDatabase;
  readonly tables: Tables;
  readonly file: number;
  readonly lockFile: number;
}

async function nextSnapshot(sight: Sight): Promise<Snapshot> {
  for (let attempt = 1; ; attempt += 1) {
    const found = readBetweenTransactions(sight, attempt === ATTEMPTS);
    if (found !== null) return found;
    await pause(LOOK_MS);
  }
}

/**
 * Null when a transaction is about to end, or has ended meanwhile. Otherwise the reader is of the transaction that both
 * looks have found, whose pages stay as they are for as long as there is a reader of it.
 *
 * A transaction can be seen in the file for as long as it takes to get its last page to the disk before LMDB gives it to
 * readers: a reader that begins in that time is of the one before.
 */
function readBetweenTransactions(
  { env, tables, file, lockFile }: Sight,
  isLast: boolean,
): Snapshot | null {
  const before = newestMeta(file, isLast);
  if (before !== null && givenToReaders(lockFile) === before.meta.transaction) {
    // LMDB would go on with the reader of an earlier read in the same turn.
    env.resetReadTxn();
    const transaction = env.useReadTransaction();
    const found = newestMeta(file, isLast);
    if (found?.meta.transaction === before.meta.transaction) {
      return { ...snapshotOf(found), tables, transaction, close: () => transaction.done() };
    }
    transaction.done();
  }
  if (isLast) throw new Error('The state changes too often to be read');
  return null;
}

const LOCK_MAGIC = 0xbeefc0de;

/** The number of the transaction that a reader gets which begins now: it follows two numbers of 32 bits. */
function givenToReaders(lockFile: number): bigint {
  const head = Buffer.alloc(16);
  const length = readSync(lockFile, head, 0, head.length, 0);
  if (length < head.length || head.readUInt32LE(0) !== LOCK_MAGIC) {
    throw new DamagedState(`${DATABASE_LOCK_FILE} is not that of a database`);
  }
  return head.readBigUInt64LE(8);
}

interface Found {
  readonly meta: Meta;
  readonly pages: PageFile;
}

/** Null when it could not be told: a page that is being written cannot be read. */
function newestMeta(file: number, isLast: boolean): Found | null {
  try {
    const { metas, pages } = readMetas(file);
    return { meta: currentMeta(metas, pages), pages };
  } catch (cause) {
    if (isLast) throw cause;
    return null;
  }
}

function snapshotOf({ meta, pages }: Found): Pick<Snapshot, 'changes' | 'leaves' | 'rowsOn'> {
  const records = tablesIn(pages, meta.main);
  const known = new Map<TableName, readonly number[]>();

  function recordOf(table: TableName): TreeRecord | null {
    return records.get(table) ?? null;
  }

  function leaves(table: TableName): readonly number[] {
    const record = recordOf(table);
    const found = known.get(table) ?? (record === null ? [] : leavesOf(pages, record));
    known.set(table, found);
    return found;
  }

  const rowsOn = (_table: TableName, leaf: number) => storedRows(pages, leaf);

  return {
    leaves,
    rowsOn,
    *changes(table, since) {
      const isVersioned = ((recordOf(table)?.flags ?? 0) & HAS_VERSIONS) !== 0;
      const mine = leaves(table);
      if (since === null) {
        for (const row of allRows(mine, (leaf) => storedRows(pages, leaf))) {
          yield changeOf(table, row, isVersioned);
        }
        return;
      }
      const theirs = since.leaves(table);
      const [added, removed] = [without(mine, theirs), without(theirs, mine)];
      const present = allRows(added, (leaf) => storedRows(pages, leaf));
      const former = allRows(removed, (leaf) => since.rowsOn(table, leaf));
      for (const { now, key } of differing(former, present)) {
        yield now === null
          ? { key: keyOf(table, key), version: 0, row: null }
          : changeOf(table, { key, data: now }, isVersioned);
      }
    },
  };
}

function without(numbers: readonly number[], others: readonly number[]): readonly number[] {
  const known = new Set(others);
  return numbers.filter((number) => !known.has(number));
}

function* allRows(
  leaves: readonly number[],
  read: (leaf: number) => readonly StoredRow[],
): Generator<StoredRow, undefined> {
  for (const leaf of leaves) yield* read(leaf);
}

interface Difference {
  readonly key: Buffer;
  /** Null when there is no such row any more. */
  readonly now: Buffer | null;
}

/** Both in the order of their keys. */
function* differing(
  former: Generator<StoredRow, undefined>,
  present: Generator<StoredRow, undefined>,
): Generator<Difference> {
  let before = former.next().value;
  let now = present.next().value;
  while (before !== undefined || now !== undefined) {
    const order = orderOf(before, now);
    if (order < 0 && before !== undefined) yield { key: before.key, now: null };
    if (order > 0 && now !== undefined) yield { key: now.key, now: now.data };
    if (order === 0 && before !== undefined && now !== undefined && !before.data.equals(now.data)) {
      yield { key: now.key, now: now.data };
    }
    if (order <= 0) before = former.next().value;
    if (order >= 0) now = present.next().value;
  }
}

/** What is not there comes last. */
function orderOf(a: StoredRow | undefined, b: StoredRow | undefined): number {
  if (a === undefined) return 1;
  return b === undefined ? -1 : Buffer.compare(a.key, b.key);
}

function changeOf(table: TableName, { key, data }: StoredRow, isVersioned: boolean): RowChange {
  return { key: keyOf(table, key), ...versioned(data, isVersioned) };
}

function keyOf(table: TableName, bytes: Buffer): RowKey {
  try {
    return bufferToKeyValue(Buffer.from(bytes)) as RowKey;
  } catch {
    throw new DamagedState(`a key of table ${table} cannot be read`);
  }
}

function tablesIn(pages: PageFile, main: TreeRecord): ReadonlyMap<string, TreeRecord> {
  const records = new Map<string, TreeRecord>();
  for (const leaf of leavesOf(pages, main)) {
    const page = pageAt(pages, leaf);
    const { count } = nodesOf(page, leaf, true);
    for (let index = 0; index < count; index += 1) {
      const at = nodeAt(page, index);
      if (nodeFlags(page, at) !== HOLDS_A_TREE || dataSize(page, at) !== TREE_RECORD) {
        throw damagedPage(leaf);
      }
      const name = page.subarray(keyAt(at), dataAt(page, at)).toString('latin1');
      records.set(name.replace(/\0$/, ''), readTree(page, dataAt(page, at)));
    }
  }
  return records;
}

/** Only the pages above them are read. */
function leavesOf(pages: PageFile, { root, depth }: TreeRecord): readonly number[] {
  if (root === NO_PAGE) return [];
  if (depth === 0 || depth > MAX_DEPTH) throw damaged('a tree is of no possible depth');
  let level = [Number(root)];
  for (let above = depth; above > 1; above -= 1) {
    const next: number[] = [];
    for (const number of level) {
      const page = pageAt(pages, number);
      const { count } = nodesOf(page, number, false);
      for (let index = 0; index < count; index += 1) next.push(childAt(page, nodeAt(page, index)));
    }
    level = next;
  }
  return level;
}

function storedRows(pages: PageFile, leaf: number): readonly StoredRow[] {
  const page = pageAt(pages, leaf);
  const { count } = nodesOf(page, leaf, true);
  return Array.from({ length: count }, (_, index) => {
    const at = nodeAt(page, index);
    return { key: page.subarray(keyAt(at), dataAt(page, at)), data: dataOf(pages, page, at) };
  });
}

function dataOf(pages: PageFile, page: Buffer, at: number): Buffer {
  const size = dataSize(page, at);
  const flags = nodeFlags(page, at);
  if (flags === 0) return page.subarray(dataAt(page, at), dataAt(page, at) + size);
  if (flags !== ON_OVERFLOW_PAGES) throw damaged('a row is of no known kind');
  const run = overflowOf(page, at);
  if (!isOverflowStart(pageAt(pages, run.first), run, size)) throw damagedPage(run.first);
  return readRun(pages, run, size);
}

function pageAt(pages: PageFile, number: number): Buffer {
  const page = Buffer.alloc(pages.pageSize);
  pages.read(number, page);
  return page;
}
