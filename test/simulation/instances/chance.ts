/** Numbers that look random, and are the same for the same seed. */
export interface Chance {
  /** From 0 up to 1. */
  next(): number;
  between(least: number, most: number): number;
}

/** The generator known as mulberry32. */
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
