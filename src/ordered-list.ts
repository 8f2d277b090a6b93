/** A list that stays in order while items come and go. */
export interface OrderedList<Item> {
  add(item: Item): void;
  /** Takes out the item that is equal in order. */
  remove(item: Item): void;
  items(): readonly Item[];
}

/** Items that come before the list is first read are sorted once, when it is. */
export function createOrderedList<Item>(compare: (a: Item, b: Item) => number): OrderedList<Item> {
  const items: Item[] = [];
  let isSorted = false;

  function sorted(): Item[] {
    if (!isSorted) items.sort(compare);
    isSorted = true;
    return items;
  }

  return {
    add(item) {
      if (!isSorted) items.push(item);
      else
        items.splice(
          firstIndex(items, (other) => compare(other, item) > 0),
          0,
          item,
        );
    },
    remove(item) {
      const index = firstIndex(sorted(), (other) => compare(other, item) >= 0);
      const found = items[index];
      if (found !== undefined && compare(found, item) === 0) items.splice(index, 1);
    },
    items: sorted,
  };
}

/** The first index whose item passes the test, which all items behind it pass too; the length if none does. */
export function firstIndex<Item>(items: readonly Item[], passes: (item: Item) => boolean): number {
  let low = 0;
  let high = items.length;
  // New items mostly belong at the end.
  if (high > 0 && !passes(items[high - 1] as Item)) return high;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (passes(items[middle] as Item)) high = middle;
    else low = middle + 1;
  }
  return low;
}
