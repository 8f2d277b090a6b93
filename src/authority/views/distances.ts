/** Distances of numbered items from the start of a search. */
export interface Distances {
  /** Clears all distances; items are numbered below `count` from now on. */
  begin(count: number): void;
  note(thing: number, distance: number): void;
  /** -1 when none is recorded. */
  of(thing: number): number;
}

/** Reusable for consecutive searches: starting one clears nothing and usually allocates nothing. */
export function createDistances(): Distances {
  /** A distance is stored as an offset from `base`; values of earlier searches are below it. */
  let stored = new Float64Array(0);
  let base = 1;
  return {
    begin(count) {
      base += stored.length;
      if (count > stored.length) stored = new Float64Array(2 * count);
    },
    note(thing, distance) {
      stored[thing] = base + distance;
    },
    of(thing) {
      const distance = (stored[thing] ?? 0) - base;
      return distance < 0 ? -1 : distance;
    },
  };
}
