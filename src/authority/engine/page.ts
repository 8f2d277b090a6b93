/** Pages of long lists: one page takes the authority about a millisecond, however long the list is. */
import type { ListPlace, PageRequest } from '../../contract/pages.ts';
import type { Writable } from '../../json/write.ts';
import { firstIndex } from '../../ordered-list.ts';

const MOST_CHARACTERS = 64 * 1024;
/** The most items that one page examines, however few pass its filter. */
const MOST_LOOKED_AT = 2000;

export interface PagedList<Item> {
  /** Sorted by `compare`. */
  readonly items: readonly Item[];
  placeOf(item: Item): ListPlace;
  compare(a: ListPlace, b: ListPlace): number;
  passes(item: Item): boolean;
  row(item: Item): Writable;
  /** Approximate length of the row in characters. */
  lengthOf(item: Item): number;
}

/** The rows after the given position, and the position to continue from; null at the end. */
export function pageOf<Item>(list: PagedList<Item>, { after, limit }: PageRequest): Writable {
  const { items } = list;
  const start =
    after === null ? 0 : firstIndex(items, (item) => list.compare(list.placeOf(item), after) > 0);
  const end = Math.min(items.length, start + MOST_LOOKED_AT);
  const rows: Writable[] = [];
  let characters = 0;
  let at = start;
  for (; at < end && rows.length < limit && characters < MOST_CHARACTERS; at += 1) {
    const item = items[at] as Item;
    if (!list.passes(item)) continue;
    rows.push(list.row(item));
    characters += list.lengthOf(item);
  }
  const last = at < items.length ? items[at - 1] : undefined;
  const next = last === undefined ? null : list.placeOf(last);
  return { next: next === null ? null : [next.at, next.id], count: rows.length, rows };
}
