/**
 * Pages of LMDB's data file (version 2 of the format, 64 bit, little endian), read without LMDB: LMDB maps the file
 * and follows any reference that it finds in it, so a damaged page would crash the process.
 */
import { fstatSync, readSync } from 'node:fs';
import { DamagedState } from '../rows.ts';

const PAGE_HEADER = 24;
const NODE_HEADER = 8;
export const TREE_RECORD = 48;
const OVERFLOW_REFERENCE = 24;

/** No tree of 2^32 pages is this deep. */
export const MAX_DEPTH = 32;

/** LMDB's value for a tree without a root. */
export const NO_PAGE = 0xffff_ffff_ffff_ffffn;

const MAGIC = 0xbeefc0de;
const FORMAT_VERSION = 2;
const META_PAGE = 8;
/** Offset of the last page number and the transaction number in a meta page. */
const META_NUMBERS = 144;
const BRANCH_PAGE = 1;
const LEAF_PAGE = 2;
const OVERFLOW_PAGE = 4;

/** LMDB's description of a tree, in the meta pages and in the nodes of the main tree. */
export interface TreeRecord {
  readonly depth: number;
  readonly entries: bigint;
  readonly root: bigint;
}

export interface Meta {
  readonly pageSize: number;
  readonly lastPage: number;
  readonly transaction: bigint;
  readonly free: TreeRecord;
  readonly main: TreeRecord;
  /** The fields that must be the same in both meta pages of a file. */
  readonly common: Buffer;
}

export type PageFile = ReturnType<typeof pageFile>;

export function pageFile(file: number, pageSize: number) {
  const pages = Math.floor(fstatSync(file).size / pageSize);
  return {
    pageSize,
    pages,
    /** Reads a page into the buffer; throws if the file ends before it. */
    read(page: number, into: Buffer): void {
      if (page >= pages) throw damaged(`it ends before page ${page}`);
      readSync(file, into, 0, pageSize, page * pageSize);
    },
  };
}

/** One of the two meta pages, which transactions write alternately as their last step. */
export function readMeta(page: Buffer): Meta {
  const isMeta =
    page.readUInt16LE(18) === META_PAGE &&
    page.readUInt32LE(PAGE_HEADER) === MAGIC &&
    (page.readUInt32LE(PAGE_HEADER + 4) & 0xffff) === FORMAT_VERSION;
  if (!isMeta) throw damaged('it does not begin as a database does');
  return {
    pageSize: page.readUInt32LE(48),
    free: readTree(page, 48),
    main: readTree(page, 96),
    lastPage: Number(page.readBigUInt64LE(META_NUMBERS)),
    transaction: page.readBigUInt64LE(META_NUMBERS + 8),
    // Without the map size, because each process that opens the file may choose its own.
    common: Buffer.concat([page.subarray(8, 40), page.subarray(48, 54), page.subarray(96, 102)]),
  };
}

/** The bytes that a meta page contains at offset `at` for this transaction. */
export function metaNumbers({ transaction, lastPage }: Pick<Meta, 'transaction' | 'lastPage'>) {
  const bytes = Buffer.alloc(16);
  bytes.writeBigUInt64LE(BigInt(lastPage), 0);
  bytes.writeBigUInt64LE(transaction, 8);
  return { bytes, at: META_NUMBERS };
}

export function readTree(bytes: Buffer, at: number): TreeRecord {
  return {
    depth: bytes.readUInt16LE(at + 6),
    entries: bytes.readBigUInt64LE(at + 32),
    root: bytes.readBigUInt64LE(at + 40),
  };
}

/** The node table of a page; throws if any of its references points outside the page. */
export function nodesOf(page: Buffer, number: number, isLeaf: boolean) {
  const lower = page.readUInt16LE(20);
  const upper = page.readUInt16LE(22) + PAGE_HEADER;
  const count = lower >> 1;
  if (
    page.readUInt16LE(18) !== (isLeaf ? LEAF_PAGE : BRANCH_PAGE) ||
    page.readUInt16LE(16) !== 0 ||
    Number(page.readBigUInt64LE(0)) !== number ||
    count === 0 ||
    lower % 2 === 1 ||
    lower + PAGE_HEADER > upper ||
    upper > page.length
  ) {
    throw damagedPage(number);
  }
  let used = 0;
  for (let index = 0; index < count; index += 1) {
    const at = nodeAt(page, index);
    if (at < upper || at + NODE_HEADER > page.length) throw damagedPage(number);
    const end = isLeaf ? dataAt(page, at) + storedSize(page, at) : dataAt(page, at);
    if (end > page.length) throw damagedPage(number);
    used += (end - at + 1) & ~1;
  }
  // Nodes fill the end of the page without gaps, so any other sum means that two of them overlap.
  if (used !== page.length - upper) throw damagedPage(number);
  return {
    count,
    /** The transaction that wrote the page. */
    transaction: page.readBigUInt64LE(8),
  };
}

export function nodeAt(page: Buffer, index: number): number {
  return page.readUInt16LE(PAGE_HEADER + 2 * index) + PAGE_HEADER;
}

export function keyAt(at: number): number {
  return at + NODE_HEADER;
}

/** The offset at which the key ends and the data begins. */
export function dataAt(page: Buffer, at: number): number {
  return at + NODE_HEADER + page.readUInt16LE(at + 6);
}

export function nodeFlags(page: Buffer, at: number): number {
  return page.readUInt16LE(at + 4);
}

/** Size of the data, wherever it is stored. */
export function dataSize(page: Buffer, at: number): number {
  return page.readUInt32LE(at);
}

export const ON_OVERFLOW_PAGES = 1;
export const HOLDS_A_TREE = 2;

function storedSize(page: Buffer, at: number): number {
  return nodeFlags(page, at) === ON_OVERFLOW_PAGES ? OVERFLOW_REFERENCE : dataSize(page, at);
}

/** The child page to which a node of a branch page points. */
export function childAt(page: Buffer, at: number): number {
  return page.readUInt32LE(at) + nodeFlags(page, at) * 0x1_0000_0000;
}

type OverflowRun = ReturnType<typeof overflowOf>;

/** The overflow pages, outside the tree, that hold the data of a node. */
export function overflowOf(page: Buffer, at: number) {
  const data = dataAt(page, at);
  return {
    first: Number(page.readBigUInt64LE(data)),
    pages: Number(page.readBigUInt64LE(data + 16)),
  };
}

/** Whether the header of the first page of the run matches the node. */
export function isOverflowStart(page: Buffer, run: OverflowRun, size: number): boolean {
  return (
    Number(page.readBigUInt64LE(0)) === run.first &&
    page.readUInt16LE(18) === OVERFLOW_PAGE &&
    page.readUInt32LE(20) === run.pages &&
    run.pages === Math.floor((PAGE_HEADER - 1 + size) / page.length) + 1
  );
}

/** The data of a node that lies on overflow pages; the caller has checked the first of them. */
export function readRun(pages: PageFile, run: OverflowRun, size: number): Buffer {
  const bytes = Buffer.alloc(run.pages * pages.pageSize);
  for (let index = 0; index < run.pages; index += 1) {
    const from = index * pages.pageSize;
    pages.read(run.first + index, bytes.subarray(from, from + pages.pageSize));
  }
  return bytes.subarray(PAGE_HEADER).subarray(0, size);
}

export function damaged(what: string): DamagedState {
  return new DamagedState(`of state/data.mdb, ${what}`);
}

export function damagedPage(number: number): DamagedState {
  return damaged(`page ${number} does not fit the others`);
}
