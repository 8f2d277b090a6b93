/**
 * Work of one thread: asked for by several, and then one after the other, one for all, or with pauses between; or so long
 * that it pauses after each slice.
 */
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';

/** Work that is done one after the other. */
export function createTurns() {
  let last: Promise<unknown> = Promise.resolve();
  return {
    /** Runs the work when all earlier work has ended, well or not. */
    run<T>(work: () => Promise<T>): Promise<T> {
      const done = last.then(work);
      last = done.catch(() => undefined);
      return done;
    },
    /** Resolves when all work so far has ended. */
    async idle(): Promise<void> {
      await last;
    },
  };
}

/** Work that concurrent callers share. */
export function createSharedWork() {
  let underWay: Promise<void> | null = null;
  return {
    /** Joins the work that is under way, or starts it; a promise when it takes a while. */
    share<Started extends Promise<void> | undefined>(
      start: () => Started,
    ): Promise<void> | Started {
      if (underWay !== null) return underWay;
      const started = start();
      if (started === undefined) return started;
      underWay = started.finally(() => {
        underWay = null;
      });
      return underWay;
    },
  };
}

interface PauseLengths {
  /** A pause is this many times as long as the work before it. */
  readonly perWork: number;
  readonly shortestMs?: number;
  readonly longestMs?: number;
}

/** Pauses after work, in proportion to its time: however often it is asked for, it takes a bounded part of the thread. */
export function createPauses(
  elapsed: () => number,
  { perWork, shortestMs = 0, longestMs = Number.POSITIVE_INFINITY }: PauseLengths,
) {
  let until = Number.NEGATIVE_INFINITY;
  return {
    /** Milliseconds until the pause is over; not above 0 when it is. */
    left: (): number => until - elapsed(),
    /** Work that began then, in monotonic milliseconds, has ended. */
    after(began: number): void {
      const ended = elapsed();
      until = ended + Math.min(Math.max(perWork * (ended - began), shortestMs), longestMs);
    },
  };
}

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
