/** The states of the process, and the order in which a stop goes through them. */
import { setTimeout as delay } from 'node:timers/promises';

/** A start ends in `serving` or with a refusal; `failed` ends the process from any state. */
export type LifecycleState = 'starting' | 'serving' | 'draining' | 'flushed' | 'closed' | 'failed';

const NEXT: Readonly<Record<LifecycleState, readonly LifecycleState[]>> = {
  starting: ['serving', 'failed'],
  serving: ['draining', 'failed'],
  draining: ['flushed', 'failed'],
  flushed: ['closed', 'failed'],
  closed: ['failed'],
  failed: [],
};

/** The steps of a stop, in order. */
export interface StopSteps {
  /** `/readyz` answers 503 from now on; everything else is served as before. */
  announce(): void | Promise<void>;
  /** Refuses all new work; resolves when all requests in flight are answered. */
  drain(): Promise<void>;
  /** Ends requests that are still arriving. */
  cut(): void | Promise<void>;
  /** Writes data that is only in memory and closes the store; nothing is acknowledged after this. */
  flush(): Promise<void>;
  /** Called if the flush takes so long that instances waiting for the state must not wait any longer. */
  overrun(): void;
  /** Ends connections and threads. */
  close(): Promise<void>;
}

export interface StopPatience {
  /** How long `/readyz` answers 503 before work is refused, milliseconds. */
  readonly announceMs: number;
  /** When aborted, skips all waiting and continues with the flush. */
  readonly hurry: AbortSignal;
}

/** How long requests in flight may take to finish after new work is refused. */
const DRAIN_MS = 5000;
/** Far longer than a flush takes while the store responds; supervisors kill a process that has not ended after 90 s. */
const FLUSH_MS = 30_000;

export function createLifecycle() {
  let state: LifecycleState = 'starting';

  /** Throws when the transition is not allowed. */
  function enter(next: LifecycleState): void {
    if (!NEXT[state].includes(next)) throw new Error(`${next} does not follow ${state}`);
    state = next;
  }

  return {
    get state(): LifecycleState {
      return state;
    },
    enter,
    /** Goes from `serving` to `closed`. */
    async stop(steps: StopSteps, { announceMs, hurry }: StopPatience): Promise<void> {
      enter('draining');
      // An edge that hangs must not prevent the flush.
      void steps.announce();
      await pause(announceMs, hurry);
      await atMost(DRAIN_MS, steps.drain(), hurry);
      void steps.cut();
      const overrun = setTimeout(steps.overrun, FLUSH_MS);
      await steps.flush().finally(() => clearTimeout(overrun));
      enter('flushed');
      await steps.close();
      enter('closed');
    },
  };
}

async function atMost(milliseconds: number, work: Promise<void>, hurry: AbortSignal) {
  const done = new AbortController();
  await Promise.race([work, pause(milliseconds, AbortSignal.any([hurry, done.signal]))]);
  done.abort();
}

/** Waits until the time is up or the stop is hurried. */
async function pause(milliseconds: number, hurry: AbortSignal): Promise<void> {
  if (milliseconds > 0)
    await delay(milliseconds, undefined, { signal: hurry }).catch(() => undefined);
}
