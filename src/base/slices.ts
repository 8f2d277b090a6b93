/** Work that would block its thread for too long: it pauses after each slice. */
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';

/** Runs the first slice at once, and each further one in its own turn of the event loop. */
export async function oneSliceATurn<Made>(work: Generator<void, Made>): Promise<Made> {
  for (;;) {
    const { done, value } = work.next();
    if (done === true) return value;
    await nextTurn();
  }
}

/** The result itself if the work is a single slice; otherwise each further slice gets its own turn. */
export function inSlices<Made>(work: Generator<void, Made>): Made | Promise<Made> {
  const first = work.next();
  return first.done === true ? first.value : nextTurn().then(() => oneSliceATurn(work));
}

/** Rests for this many times the duration of the previous slice. */
const REST_PER_SLICE = 2;

/**
 * The result itself if the work is a single slice; otherwise further slices leave two thirds of the thread's time to
 * other work. Use it for work that takes seconds in total and is not urgent. The pauses do not keep the process alive.
 *
 * @param elapsed Monotonic milliseconds.
 */
export function inRestingSlices<Made>(
  work: Generator<void, Made>,
  elapsed: () => number,
): Made | Promise<Made> {
  const first = work.next();
  return first.done === true ? first.value : restOf(work, elapsed);
}

async function restOf<Made>(work: Generator<void, Made>, elapsed: () => number): Promise<Made> {
  let rest = 1;
  for (;;) {
    await pause(rest, undefined, { ref: false });
    const started = elapsed();
    const { done, value } = work.next();
    if (done === true) return value;
    rest = REST_PER_SLICE * (elapsed() - started);
  }
}

/** Runs all slices at once, for data that changes faster than it can be read in slices. */
export function withoutPause<Made>(work: Generator<void, Made>): Made {
  for (;;) {
    const { done, value } = work.next();
    if (done === true) return value;
  }
}

/** Sorts in slices of this many items at most; those that compare equal keep their order. */
export function* sortedInSlices<Item>(
  items: readonly Item[],
  perSlice: number,
  compare: (a: Item, b: Item) => number,
): Generator<void, Item[]> {
  if (items.length <= perSlice) return items.toSorted(compare);
  const middle = items.length >>> 1;
  const left = yield* sortedInSlices(items.slice(0, middle), perSlice, compare);
  yield;
  const right = yield* sortedInSlices(items.slice(middle), perSlice, compare);
  const sorted: Item[] = [];
  for (let l = 0, r = 0; sorted.length < items.length; ) {
    if (sorted.length % perSlice === 0) yield;
    const isLeft =
      l < left.length && (r === right.length || compare(left[l] as Item, right[r] as Item) <= 0);
    sorted.push((isLeft ? left[l++] : right[r++]) as Item);
  }
  return sorted;
}

/** Visits all of the items, and pauses after this many of them. */
export function* visitInSlices<Item>(
  items: Iterable<Item>,
  perSlice: number,
  visit: (item: Item) => void,
): Generator<void, void> {
  let visited = 0;
  for (const item of items) {
    visit(item);
    visited += 1;
    if (visited % perSlice === 0) yield;
  }
}
