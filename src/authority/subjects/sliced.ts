/** Queries that take longer than a slice of the authority's time. */
import type { Writable } from '../../base/json/write.ts';
import { createTurns, oneSliceATurn } from '../../base/work.ts';
import { Refusal } from '../../protocol/refusals.ts';

/** Returned by a long query: work that pauses between slices and ends with the answer. */
export class Sliced {
  readonly work: Generator<void, Writable>;

  constructor(work: Generator<void, Writable>) {
    this.work = work;
  }
}

/** The most sliced queries that run or wait; any more are refused. */
const MOST_WAITING = 64;

/**
 * Runs sliced queries one after another, one slice per turn of the event loop, so that all of them together delay other
 * calls by only one slice per turn.
 */
export type SliceQueue = ReturnType<typeof createSliceQueue>;

export function createSliceQueue() {
  const turns = createTurns();
  let waiting = 0;

  return {
    run({ work }: Sliced): Promise<Writable> {
      if (waiting >= MOST_WAITING) throw new Refusal('rate_limit_exceeded');
      waiting += 1;
      return turns
        .run(() => oneSliceATurn(work))
        .finally(() => {
          waiting -= 1;
        });
    },
  };
}
