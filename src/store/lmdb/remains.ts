/**
 * Reads the rows of a damaged database from its pages without LMDB, which would follow invalid references in a damaged
 * page. An unreadable page loses only what is below it. Freed pages are not read, because they contain outdated rows,
 * such as certificates that have since been revoked.
 */
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { bufferToKeyValue } from 'lmdb';
import { type RowKey, TABLES, type TableName } from '../rows.ts';
import type { StoredRow } from '../tables.ts';
import { lockFolder } from './folder-lock.ts';
import { assertDatabase, DATABASE_FILE } from './folder-state.ts';
import { LARGEST_PAGE, META_PAGES } from './metas.ts';
import {
  childAt,
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
  pageFile,
  readMeta,
  readRun,
  readTree,
  type TreeRecord,
  versioned,
} from './pages.ts';

/** A stored row, whose checksum was not verified. */
export interface RemainingRow extends StoredRow {
  readonly table: TableName;
}

/** A sentence that says what cannot be read. */
export interface Loss {
  readonly lost: string;
}

const SMALLEST_PAGE = 512;

/**
 * Yields one table after another, `meta` first. Throws a one-sentence error if the folder is in use or has no state.
 */
export function* readRemains(dataDir: string): Generator<RemainingRow | Loss> {
  const path = join(dataDir, DATABASE_FILE);
  assertDatabase(dataDir);
  const lock = lockFolder(dataDir);
  const file = openSync(path, 'r');
  try {
    const found = newestRoot(file);
    if (found === null) {
      yield { lost: 'everything: neither of the first two pages can be read' };
      return;
    }
    if (!found.isCertain) yield { lost: 'perhaps the last transaction: the one before it is read' };
    yield* tablesIn(found.pages, found.meta);
  } finally {
    closeSync(file);
    lock.release();
  }
}

interface Root {
  readonly pages: PageFile;
  readonly meta: Meta;
  /** Whether there cannot have been a newer transaction. */
  readonly isCertain: boolean;
}

/** The root of the newest transaction whose main tree has a readable root page. */
function newestRoot(file: number): Root | null {
  for (let size = SMALLEST_PAGE; size <= LARGEST_PAGE; size *= 2) {
    const pages = pageFile(file, size);
    const metas = [0, 1].flatMap((number) => metaAt(pages, number) ?? []);
    // The transaction number in a meta page may be damaged or not written yet, so the root pages decide.
    const roots = metas.flatMap((meta) => {
      const page = pageAt(pages, Number(meta.main.root));
      return page === null ? [] : [{ meta, writer: page.bytes.readBigUInt64LE(8) }];
    });
    const [newest] = roots.toSorted((a, b) => Number(b.writer - a.writer));
    if (newest === undefined) continue;
    const isCertain =
      roots.length === META_PAGES && roots.every(({ meta, writer }) => meta.transaction === writer);
    return { pages, meta: newest.meta, isCertain };
  }
  return null;
}

function metaAt(pages: PageFile, number: number): Meta | null {
  try {
    const page = Buffer.alloc(pages.pageSize);
    pages.read(number, page);
    const meta = readMeta(page);
    return meta.pageSize === pages.pageSize ? meta : null;
  } catch {
    return null;
  }
}

function* tablesIn(pages: PageFile, { main }: Meta): Generator<RemainingRow | Loss> {
  const records = new Map<string, TreeRecord>();
  for (const found of nodesBelow(pages, main, 'the list of tables')) {
    if ('lost' in found) yield found;
    else if (nodeFlags(found.page, found.at) === HOLDS_A_TREE) {
      const name = keyBytes(found).toString('latin1').replace(/\0$/, '');
      records.set(name, readTree(found.page, dataAt(found.page, found.at)));
    }
  }
  for (const table of TABLES) {
    const record = records.get(table);
    if (record === undefined) yield { lost: `table ${table}: it is not in the list of tables` };
    else yield* rowsOf(pages, table, record);
  }
}

function* rowsOf(
  pages: PageFile,
  table: TableName,
  record: TreeRecord,
): Generator<RemainingRow | Loss> {
  let count = 0n;
  for (const found of nodesBelow(pages, record, `table ${table}`)) {
    if ('lost' in found) yield found;
    else {
      count += 1n;
      yield rowAt(pages, table, found, (record.flags & HAS_VERSIONS) !== 0);
    }
  }
  if (count !== record.entries) {
    yield { lost: `table ${table}: ${count} rows were found where ${record.entries} were stored` };
  }
}

function rowAt(
  pages: PageFile,
  table: TableName,
  node: Node,
  hasVersions: boolean,
): RemainingRow | Loss {
  try {
    const key = bufferToKeyValue(Buffer.from(keyBytes(node))) as RowKey;
    return { table, key, ...versioned(dataOf(pages, node), hasVersions) };
  } catch {
    return { lost: `table ${table}: a row on page ${node.number} cannot be read` };
  }
}

interface Node {
  readonly page: Buffer;
  readonly number: number;
  readonly at: number;
}

/** The nodes of all readable leaf pages of a tree, in order. */
function* nodesBelow(pages: PageFile, tree: TreeRecord, what: string): Generator<Node | Loss> {
  if (tree.root === NO_PAGE) return;
  const seen = new Set<number>();
  function* visit(number: number, depth: number): Generator<Node | Loss> {
    const page = seen.has(number) || depth > MAX_DEPTH ? null : pageAt(pages, number);
    if (page === null) {
      yield { lost: `${what}: page ${number} and what is below it` };
      return;
    }
    seen.add(number);
    for (let index = 0; index < page.count; index += 1) {
      const at = nodeAt(page.bytes, index);
      if (page.isLeaf) yield { page: page.bytes, number, at };
      else yield* visit(childAt(page.bytes, at), depth + 1);
    }
  }
  yield* visit(Number(tree.root), 1);
}

interface Page {
  readonly bytes: Buffer;
  readonly isLeaf: boolean;
  readonly count: number;
}

/** A page of a tree; null if it is damaged or does not exist. */
function pageAt(pages: PageFile, number: number): Page | null {
  const bytes = Buffer.alloc(pages.pageSize);
  for (const isLeaf of [true, false]) {
    try {
      pages.read(number, bytes);
      return { bytes, isLeaf, count: nodesOf(bytes, number, isLeaf).count };
    } catch {
      // It may be a page of the other kind.
    }
  }
  return null;
}

function keyBytes({ page, at }: Node): Buffer {
  return page.subarray(keyAt(at), dataAt(page, at));
}

/** Throws if the overflow pages do not match the node. */
function dataOf(pages: PageFile, { page, at }: Node): Buffer {
  const size = dataSize(page, at);
  if (nodeFlags(page, at) !== ON_OVERFLOW_PAGES) {
    return page.subarray(dataAt(page, at), dataAt(page, at) + size);
  }
  const run = overflowOf(page, at);
  const start = Buffer.alloc(pages.pageSize);
  pages.read(run.first, start);
  if (!isOverflowStart(start, run, size)) throw new Error(`Page ${run.first} does not fit`);
  return readRun(pages, run, size);
}
