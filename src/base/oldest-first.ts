/** The keys of a map in the order in which they were set, each taken out as it is asked for. */
export interface OldestFirst<Key> {
  /** Deletes the key that was set before all others and returns it; undefined when there is none. */
  take(): Key | undefined;
  /** Call whenever the map has changed and none is taken. */
  pass(): void;
}

/**
 * A map keeps the places of deleted entries until it grows or shrinks, and anyone who begins at its first entry passes
 * over all of them: in a map of 50,000 keys whose oldest makes room for each new one, that is 30 µs each time. One
 * iterator that goes on does not look at them again, and what is set meanwhile comes behind it. One that stands still
 * must not be kept: it keeps each table that the map has outgrown since, with all of its entries.
 */
export function oldestFirst<Key>(map: Map<Key, unknown>): OldestFirst<Key> {
  let keys: IterableIterator<Key> | null = null;
  let passed = 0;

  function next(): Key | undefined {
    keys ??= map.keys();
    const { done, value } = keys.next();
    if (done !== true) return value;
    // An iterator that has ended never goes on.
    keys = map.keys();
    return keys.next().value;
  }

  return {
    take() {
      passed = 0;
      const key = next();
      if (key !== undefined) map.delete(key);
      return key;
    },
    pass() {
      passed += 1;
      if (passed > map.size) keys = null;
    },
  };
}
