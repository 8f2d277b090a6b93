/** An event loop on a simulated clock, and connections to a simulated server, for tests of the load generator. */
import type { Connection } from '../../bench/load/connection.ts';
import type { Loop } from '../../bench/load/drive.ts';

/** A turn of the loop that has nothing to do takes this long. */
const TURN_MS = 0.05;

export interface SimulatedLoop extends Loop {
  /** Runs until the promise has settled. */
  run<T>(work: Promise<T>): Promise<T>;
}

export function simulatedLoop(): SimulatedLoop {
  let now = 0;
  let order = 0;
  let calls: { at: number; order: number; call: () => void }[] = [];

  function runNext(): void {
    const next = calls.reduce((first, each) =>
      each.at < first.at || (each.at === first.at && each.order < first.order) ? each : first,
    );
    calls = calls.filter((each) => each !== next);
    now = Math.max(now, next.at);
    next.call();
  }

  return {
    elapsed: () => now,
    after(milliseconds, call) {
      order += 1;
      calls.push({ at: now + Math.max(milliseconds, TURN_MS), order, call });
    },
    async run(work) {
      let isSettled = false;
      const settled = work.finally(() => {
        isSettled = true;
      });
      settled.catch(() => undefined);
      while (!isSettled) {
        for (let left = 100; left > 0 && calls.length > 0; left -= 1) runNext();
        // Promises that the calls have resolved continue here.
        await new Promise(setImmediate);
      }
      return settled;
    },
  };
}

export interface SimulatedServer {
  open(): Connection;
}

/**
 * A server that answers with 200 and works on one request at a time; `workMs` is the duration of one that arrives at
 * this time, or null if its connection fails.
 */
export function simulatedServer(
  loop: Loop,
  workMs: (now: number) => number | null,
): SimulatedServer {
  let freeAt = 0;
  return {
    open() {
      const connection: Connection = {
        send() {
          const now = loop.elapsed();
          const work = workMs(now);
          if (work === null) {
            loop.after(0, () => connection.failed(new Error('The connection was reset')));
            return;
          }
          freeAt = Math.max(freeAt, now) + work;
          loop.after(freeAt - now, () => connection.answered(200, Buffer.alloc(0), ''));
        },
        close: () => undefined,
        answered: () => undefined,
        failed: () => undefined,
      };
      return connection;
    },
  };
}
