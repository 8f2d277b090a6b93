import { createRequestQueue, type RequestQueue } from '../../src/edge/limits/request-queue.ts';

/** The queue of a thread that is not watched and turns nothing away. */
export function patientQueue(elapsed: () => number): RequestQueue {
  return createRequestQueue({
    longestWaitMs: 0,
    elapsed,
    schedule: setImmediate,
    progress: () => undefined,
  });
}
