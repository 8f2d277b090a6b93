/** Work that takes longer than anything else on its thread may wait: it pauses after each slice. */
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';

/** Runs the first slice at once, and each further one in a turn of the event loop of its own. */
export async function oneSliceATurn<Made>(work: Generator<void, Made>): Promise<Made> {
  for (;;) {
    const { done, value } = work.next();
    if (done === true) return value;
    await nextTurn();
  }
}

/** The result itself if the work is a single slice; otherwise each further slice has a turn of its own. */
export function inSlices<Made>(work: Generator<void, Made>): Made | Promise<Made> {
  const first = work.next();
  return first.done === true ? first.value : nextTurn().then(() => oneSliceATurn(work));
}

/** Rests for this many times as long as the slice before took. */
const REST_PER_SLICE = 2;

/**
 * The result itself if the work is a single slice; otherwise further slices leave two thirds of the thread to
 * others: for what takes seconds in total and is not urgent. The rests do not keep the process alive.
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

/** Runs all slices at once: for what changes faster than it can be read in slices. */
export function withoutPause<Made>(work: Generator<void, Made>): Made {
  for (;;) {
    const { done, value } = work.next();
    if (done === true) return value;
  }
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
