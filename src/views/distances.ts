/** Distances of numbered things from where a search began. */
export interface Distances {
  /** Forgets what was noted; things are numbered below `count` from now on. */
  begin(count: number): void;
  note(thing: number, distance: number): void;
  /** -1 when none was noted. */
  of(thing: number): number;
}

/** To be used by one search after another: beginning one clears nothing and mostly allocates nothing. */
export function createDistances(): Distances {
  /** A distance is stored as so much more than `base`; earlier searches left only what is below it. */
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
