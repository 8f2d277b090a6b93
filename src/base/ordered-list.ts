/** A list that stays sorted while items are added and removed. */
export type OrderedList<Item> = ReturnType<typeof createOrderedList<Item>>;

/** Items added before the first read are sorted once, at that read. */
export function createOrderedList<Item>(compare: (a: Item, b: Item) => number) {
  const items: Item[] = [];
  let isSorted = false;

  function sorted(): Item[] {
    if (!isSorted) items.sort(compare);
    isSorted = true;
    return items;
  }

  return {
    add(item: Item): void {
      if (isSorted) insertInOrder(items, item, compare);
      else items.push(item);
    },
    /** Removes the item that compares equal. */
    remove(item: Item): void {
      const index = firstIndex(sorted(), (other) => compare(other, item) >= 0);
      const found = items[index];
      if (found !== undefined && compare(found, item) === 0) items.splice(index, 1);
    },
    items: sorted,
  };
}

/** Inserts into a sorted list, after items that compare equal. */
export function insertInOrder<Item>(
  items: Item[],
  item: Item,
  compare: (a: Item, b: Item) => number,
): void {
  const place = firstIndex(items, (other) => compare(other, item) > 0);
  items.splice(place, 0, item);
}

/** The first index whose item passes the test, given that all later items pass it too; the length if none does. */
export function firstIndex<Item>(items: readonly Item[], passes: (item: Item) => boolean): number {
  let low = 0;
  let high = items.length;
  // New items usually belong at the end.
  if (high > 0 && !passes(items[high - 1] as Item)) return high;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (passes(items[middle] as Item)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The order of names for people. Numbers in them count as numbers: web-2 comes before web-10. */
export const COLLATOR = new Intl.Collator('en', { numeric: true });
