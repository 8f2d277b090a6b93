/** The two meta pages of LMDB's data file: which of them is current, and whether its writer finished. */
import { readSync } from 'node:fs';
import {
  damaged,
  damagedPage,
  type Meta,
  NO_PAGE,
  type PageFile,
  pageFile,
  readMeta,
  type TreeRecord,
} from './pages.ts';

const SMALLEST_PAGE = 512;
export const LARGEST_PAGE = 65_536;
export const META_PAGES = 2;
/**
 * How many pages may be missing at the end of the file because they were allocated and freed again before being
 * written.
 */
export const MOST_UNWRITTEN = 2 ** 20;

export type Metas = readonly [even: Meta, odd: Meta];

/** Reads both meta pages; throws unless they describe the same file. */
export function readMetas(file: number): { metas: Metas; pages: PageFile } {
  const head = Buffer.alloc(SMALLEST_PAGE);
  if (readSync(file, head, 0, head.length, 0) < head.length) throw damaged('it is cut off');
  const { pageSize } = readMeta(head);
  const isSize = pageSize >= SMALLEST_PAGE && pageSize <= LARGEST_PAGE;
  if (!isSize || (pageSize & (pageSize - 1)) !== 0) throw damagedPage(0);
  const pages = pageFile(file, pageSize);
  const page = Buffer.alloc(pageSize);
  const metaAt = (number: number) => {
    pages.read(number, page);
    return readMeta(page);
  };
  const metas: Metas = [metaAt(0), metaAt(1)];
  if (!metas[0].common.equals(metas[1].common)) throw damagedPage(1);
  return { metas, pages };
}

/**
 * The meta page of the last transaction. Both pages must be sound, because only their numbers show which one is
 * current.
 */
export function currentMeta(metas: Metas, pages: PageFile): Meta {
  if (unfinishedMeta(metas, pages) !== null) throw new Error(UNFINISHED);
  for (const [number, meta] of metas.entries()) assertWritten(meta, number, pages);
  const [even, odd] = metas;
  const meta = even.transaction >= odd.transaction ? even : odd;
  if (even.transaction - odd.transaction > 1n || odd.transaction - even.transaction > 1n) {
    throw damagedPage(meta === even ? 1 : 0);
  }
  return meta;
}

const UNFINISHED =
  'The last write to state/data.mdb was interrupted: start the authority on it once, which finishes the write';

/** A meta page whose transaction number does not match its trees. */
export interface UnfinishedMeta {
  readonly page: number;
  readonly meta: Meta;
  /** The number of the transaction that wrote the trees. */
  readonly transaction: bigint;
}

/**
 * The meta page that a transaction failed to write as its last step. LMDB then restores the earlier transaction number
 * and last page, and leaves them next to the new trees. Those trees are on disk, because the meta page is written
 * after them. Damage to the number alone looks similar, so the roots of both trees must have the next transaction
 * number.
 */
export function unfinishedMeta(metas: Metas, pages: PageFile): UnfinishedMeta | null {
  const page = metas[0].transaction < metas[1].transaction ? 0 : 1;
  const meta = metas[page];
  const current = metas[1 - page] as Meta;
  if (current.transaction - meta.transaction !== 1n) return null;
  const transaction = current.transaction + 1n;
  const isNext = (tree: TreeRecord) =>
    tree.root < BigInt(pages.pages) && writerOf(tree, pages) === transaction;
  return isNext(meta.main) && isNext(meta.free) ? { page, meta, transaction } : null;
}

/** A transaction that changes anything writes the root of the main tree, and its number into it. */
function assertWritten(meta: Meta, number: number, pages: PageFile): void {
  if (meta.transaction === 0n) return;
  const { root } = meta.main;
  if (Number(meta.transaction & 1n) !== number) throw damagedPage(number);
  if (meta.lastPage > pages.pages + MOST_UNWRITTEN) throw damaged('it is cut off');
  if (root === NO_PAGE) return;
  if (root > BigInt(meta.lastPage)) throw damagedPage(number);
  if (writerOf(meta.main, pages) !== meta.transaction) throw damagedPage(number);
}

/** The transaction that wrote the root of the tree. */
function writerOf({ root }: TreeRecord, pages: PageFile): bigint {
  const page = Buffer.alloc(pages.pageSize);
  pages.read(Number(root), page);
  return page.readBigUInt64LE(8);
}
