/** A reproducible source of choices from one seed. */
export interface Random {
  /** In the range [0, 1). */
  next(): number;
  below(limit: number): number;
  between(least: number, most: number): number;
  one<T>(choices: readonly T[]): T;
}

/** mulberry32: 32 bits of state, good enough to choose test inputs. */
export function randomFrom(seed: number): Random {
  let state = seed >>> 0;
  function next(): number {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000;
  }
  const below = (limit: number) => Math.floor(next() * limit);
  return {
    next,
    below,
    between: (least, most) => least + next() * (most - least),
    one: (choices) => choices[below(choices.length)] as (typeof choices)[number],
  };
}
