/**
 * Checks that LMDB's data file is a sound database before LMDB maps it: each page of the trees is where it should be
 * and of the right kind, keys are sorted, no reference points outside the file, the counts are right, and no page is
 * both free and in use. The rows themselves have checksums.
 *
 * Checksums and totals alone are not enough. Of 500 bits flipped in meta pages, headers and nodes without this check, 105
 * killed the process, mostly by a signal and without a word, four made last contacts vanish, and two let a service start
 * and lose entries of the audit log that it had acknowledged.
 */
import { closeSync, openSync, readSync } from 'node:fs';
import { RECENT_AUDIT } from '../audit-log.ts';
import { currentMeta, LARGEST_PAGE, META_PAGES, readMetas } from './metas.ts';
import {
  childAt,
  damaged,
  damagedPage,
  dataAt,
  dataSize,
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
} from './pages.ts';

/**
 * How much of the audit log to check. It grows without limit, and a service reads and writes only its end, so only
 * callers that read the entire log check all of it.
 */
export type LogExtent = 'end' | 'whole';

/** Throws `DamagedState` if the database in this file cannot be opened safely. */
export function checkStructure(path: string, log: LogExtent): void {
  const file = openSync(path, 'r');
  try {
    const { metas, pages } = readMetas(file);
    checkTrees(pages, currentMeta(metas, pages), log);
  } finally {
    closeSync(file);
  }
}

/** Throws unless the trees of this meta page are sound; returns the last page that is in use or free. */
export function checkTrees(pages: PageFile, meta: Meta, log: LogExtent): number {
  const used = new Uint8Array(meta.lastPage + 1);
  const walk = createWalk(pages, meta, used);
  walk.tree(meta.main, 'main');
  for (const { name, record } of walk.subtrees) {
    walk.tree(record, name === LOG_TABLE && log === 'end' ? 'log' : 'table');
  }
  walk.tree(meta.free, 'free');
  return used.lastIndexOf(1);
}

/** How many times to check a database that keeps changing during the check. */
const ATTEMPTS = 5;

/**
 * Like `checkStructure`, for a file that another process may be writing to. A finding counts only if no transaction
 * ended during the check, because pages may be overwritten from the second transaction on. Returns false if the file
 * never stopped changing.
 */
export function checkStructureInUse(path: string): boolean {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const before = metaBytes(path);
    try {
      checkStructure(path, 'whole');
      return true;
    } catch (cause) {
      if (metaBytes(path).equals(before)) throw cause;
    }
  }
  return false;
}

/** The bytes of both meta pages, for any page size. */
function metaBytes(path: string): Buffer {
  const file = openSync(path, 'r');
  try {
    const bytes = Buffer.alloc(META_PAGES * LARGEST_PAGE);
    return bytes.subarray(0, readSync(file, bytes, 0, bytes.length, 0));
  } finally {
    closeSync(file);
  }
}

/** In a `log`, only the last rows and the branch pages above them are visited. */
type TreeKind = 'main' | 'table' | 'log' | 'free';

const LOG_TABLE = 'audit';
/**
 * Each row has at least one entry, so these rows contain at least the entries that are read at startup, and the one
 * before them.
 */
const LAST_ROWS = BigInt(RECENT_AUDIT + 1);

function createWalk(pages: PageFile, meta: Meta, used: Uint8Array) {
  const subtrees: { readonly name: string; readonly record: TreeRecord }[] = [];
  /** One page per level, because a branch page is still needed after its children were visited. */
  const levels: Buffer[] = [];
  const overflow = Buffer.alloc(pages.pageSize);
  let entries = 0n;

  function tree({ root, depth, entries: expected }: TreeRecord, kind: TreeKind): void {
    entries = 0n;
    if (root === NO_PAGE) {
      if (depth !== 0 || expected !== 0n) throw damaged('an empty tree has entries');
      return;
    }
    if (depth === 0 || depth > MAX_DEPTH) throw damaged('a tree is of no possible depth');
    visit(Number(root), depth, kind, meta.transaction, null, null);
    const isWhole = kind !== 'log' || entries < LAST_ROWS;
    if (isWhole ? entries !== expected : entries > expected) {
      throw damaged(`a tree holds ${entries} entries where ${expected} were stored`);
    }
  }

  /** Checks a page, whose keys must be at least `from` and less than `to`, and the pages below it. */
  function visit(
    number: number,
    depth: number,
    kind: TreeKind,
    writtenBy: bigint,
    from: Buffer | null,
    to: Buffer | null,
  ): void {
    take(number, 1);
    levels[depth] ??= Buffer.alloc(pages.pageSize);
    const page = levels[depth];
    pages.read(number, page);
    const isLeaf = depth === 1;
    const { count, transaction } = nodesOf(page, number, isLeaf);
    // A changed page is copied along with all pages above it, so no page can be newer than its parent.
    if (transaction > writtenBy) throw damagedPage(number);
    // The first key of a branch page counts as lower than all others, regardless of its bytes.
    const keys = { first: isLeaf ? 0 : 1, count, from, to };
    assertInOrder(page, number, keys, kind === 'free' ? compareNumbers : compareBytes);
    if (isLeaf) {
      for (let index = 0; index < count; index += 1)
        leafNode(page, number, nodeAt(page, index), kind);
      entries += BigInt(count);
      return;
    }
    // Begin with the last child, because a log is visited from its end.
    for (let index = count - 1; index >= 0; index -= 1) {
      const at = nodeAt(page, index);
      if (kind === 'log' && entries >= LAST_ROWS) {
        take(childAt(page, at), 1);
        continue;
      }
      const lowest = index === 0 ? from : keyIn(page, at);
      const next = index + 1 < count ? keyIn(page, nodeAt(page, index + 1)) : to;
      visit(childAt(page, at), depth - 1, kind, transaction, lowest, next);
    }
  }

  function leafNode(page: Buffer, number: number, at: number, kind: TreeKind): void {
    const flags = nodeFlags(page, at);
    if (flags === HOLDS_A_TREE && kind === 'main') {
      if (dataSize(page, at) !== TREE_RECORD) throw damagedPage(number);
      const name = keyIn(page, at).toString('latin1').replace(/\0$/, '');
      subtrees.push({ name, record: readTree(page, dataAt(page, at)) });
      return;
    }
    if (kind === 'main') throw damagedPage(number);
    if (flags === ON_OVERFLOW_PAGES) {
      const run = overflowOf(page, at);
      take(run.first, run.pages);
      pages.read(run.first, overflow);
      if (!isOverflowStart(overflow, run, dataSize(page, at))) throw damagedPage(run.first);
      if (run.first + run.pages > pages.pages) throw damaged(`it ends within page ${run.first}`);
      if (kind === 'free') freePages(readRun(pages, run, dataSize(page, at)));
    } else if (flags !== 0) {
      throw damagedPage(number);
    } else if (kind === 'free') {
      freePages(page.subarray(dataAt(page, at), dataAt(page, at) + dataSize(page, at)));
    }
  }

  /** Marks pages as in use or as free; no page may be marked twice. */
  function take(first: number, count: number): void {
    if (first < META_PAGES || count < 1 || first + count - 1 > meta.lastPage) {
      throw damaged(`a page ${first} is named that cannot exist`);
    }
    for (let page = first; page < first + count; page += 1) {
      if (used[page] === 1) throw damaged(`page ${page} is in use twice`);
      used[page] = 1;
    }
  }

  /**
   * The list is a count, then page numbers; a negative number is the length of the run that begins at the next page.
   */
  function freePages(list: Buffer): void {
    const count = list.length < 8 ? -1 : Number(list.readBigInt64LE(0));
    if (count < 0 || 8 * (count + 1) > list.length)
      throw damaged('a list of free pages is too long');
    let length = 1;
    for (let index = 1; index <= count; index += 1) {
      const entry = Number(list.readBigInt64LE(8 * index));
      if (entry > 0) take(entry, length);
      length = entry < 0 ? -entry : 1;
    }
  }

  return { tree, subtrees };
}

/** Compares two keys, each given by a page, or the key alone, and by its place there. */
type Compare = (
  a: Buffer,
  start: number,
  end: number,
  b: Buffer,
  otherStart: number,
  otherEnd: number,
) => number;

/** Keys of the list of free pages are transaction numbers; all other keys are compared byte by byte. */
const compareNumbers: Compare = (a, start, _end, b, otherStart) => {
  const [first, second] = [a.readBigUInt64LE(start), b.readBigUInt64LE(otherStart)];
  return first === second ? 0 : first < second ? -1 : 1;
};

/** A loop over places, because `Buffer.compare` needs an object for each key and takes several times as long. */
const compareBytes: Compare = (a, start, end, b, otherStart, otherEnd) => {
  const shift = otherStart - start;
  for (let at = start; at < end && at + shift < otherEnd; at += 1) {
    const difference = (a[at] as number) - (b[at + shift] as number);
    if (difference !== 0) return difference;
  }
  return end - start - (otherEnd - otherStart);
};

function assertInOrder(page: Buffer, number: number, keys: KeyRange, compare: Compare): void {
  const { first, count, from, to } = keys;
  if (first >= count) return;
  let start = 0;
  let end = 0;
  for (let index = first; index < count; index += 1) {
    const at = nodeAt(page, index);
    const [nextStart, nextEnd] = [keyAt(at), dataAt(page, at)];
    const isInOrder =
      index > first
        ? compare(page, start, end, page, nextStart, nextEnd) < 0
        : from === null || compare(page, nextStart, nextEnd, from, 0, from.length) >= 0;
    if (!isInOrder) throw damagedPage(number);
    start = nextStart;
    end = nextEnd;
  }
  if (to !== null && compare(page, start, end, to, 0, to.length) >= 0) throw damagedPage(number);
}

/** The keys of a page, starting at index `first`; they must be at least `from` and less than `to`. */
interface KeyRange {
  readonly first: number;
  readonly count: number;
  readonly from: Buffer | null;
  readonly to: Buffer | null;
}

function keyIn(page: Buffer, at: number): Buffer {
  return page.subarray(keyAt(at), dataAt(page, at));
}
