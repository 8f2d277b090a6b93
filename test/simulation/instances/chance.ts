/** Pseudorandom numbers, the same for the same seed. */
export interface Chance {
  /** In the range [0, 1). */
  next(): number;
  between(least: number, most: number): number;
}

/** The mulberry32 generator. */
export function chanceOf(seed: number): Chance {
  let state = seed | 0;
  function next(): number {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }
  return { next, between: (least, most) => least + next() * (most - least) };
}
