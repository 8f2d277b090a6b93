/**
 * Finishes a transaction whose last step failed: its trees are on disk, but not the number that makes them
 * current. It was never acknowledged, but may be kept, and must be: damage to the number of an acknowledged
 * transaction looks the same.
 */
import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs';
import { MOST_UNWRITTEN, readMetas, unfinishedMeta } from './metas.ts';
import { metaNumbers } from './pages.ts';
import { checkTrees } from './structure.ts';

/** Nothing else may have the file open. Throws `DamagedState` when the trees are not sound. */
export function finishWrite(path: string): void {
  const file = openSync(path, 'r+');
  try {
    const { metas, pages } = readMetas(file);
    const unfinished = unfinishedMeta(metas, pages);
    if (unfinished === null) return;
    const { page, meta, transaction } = unfinished;
    // Its own last page is lost; no page that is in use or free comes later.
    const most = { ...meta, transaction, lastPage: pages.pages + MOST_UNWRITTEN };
    const lastPage = checkTrees(pages, most, 'whole');
    const { bytes, at } = metaNumbers({ transaction, lastPage });
    writeSync(file, bytes, 0, bytes.length, page * pages.pageSize + at);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
