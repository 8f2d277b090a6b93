/** Pages through long lists: one page takes the authority about a millisecond, no matter how long the list is. */

import type { Writable } from '../../base/json/write.ts';
import { firstIndex } from '../../base/ordered-list.ts';
import type { ListPlace, PageRequest } from '../../protocol/contract/inputs.ts';

const MOST_CHARACTERS = 64 * 1024;
/** The most items that one page examines, even if few of them pass its filter. */
export const MOST_LOOKED_AT = 2000;

/** How the items of a list become rows. */
export interface Rows<Item, Found = Item> {
  placeOf(item: Item): ListPlace;
  /** What becomes the row of the item; null if it does not pass the filter. */
  found(item: Item): Found | null;
  row(found: Found): Writable;
  /** Approximate length of the row in characters. */
  lengthOf(found: Found): number;
}

export interface PagedList<Item> extends Omit<Rows<Item>, 'found'> {
  passes(item: Item): boolean;
  /** Sorted by `compare`. */
  readonly items: readonly Item[];
  compare(a: ListPlace, b: ListPlace): number;
}

/** The rows after the given position, and the position to continue from, which is null at the end. */
export function pageOf<Item>(list: PagedList<Item>, { after, limit }: PageRequest): Writable {
  const { items } = list;
  const start =
    after === null ? 0 : firstIndex(items, (item) => list.compare(list.placeOf(item), after) > 0);
  const found = (item: Item) => (list.passes(item) ? item : null);
  return pageFrom({ ...list, found }, itemsFrom(items, start), limit);
}

function* itemsFrom<Item>(items: readonly Item[], start: number): Generator<Item> {
  for (let at = start; at < items.length; at += 1) yield items[at] as Item;
}

/** Like `pageOf`, but for an iterable that already starts at the first item of the page. */
export function pageFrom<Item, Found>(
  list: Rows<Item, Found>,
  items: Iterable<Item>,
  limit: number,
): Writable {
  const rows: Writable[] = [];
  let characters = 0;
  let lookedAt = 0;
  let next: ListPlace | null = null;
  let last: Item | null = null;
  for (const item of items) {
    const isFull = rows.length === limit || characters >= MOST_CHARACTERS;
    if (last !== null && (isFull || lookedAt === MOST_LOOKED_AT)) {
      next = list.placeOf(last);
      break;
    }
    last = item;
    lookedAt += 1;
    const found = list.found(item);
    if (found === null) continue;
    rows.push(list.row(found));
    characters += list.lengthOf(found);
  }
  return { next: next === null ? null : [next.at, next.id], count: rows.length, rows };
}
