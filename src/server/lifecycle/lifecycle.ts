/**
 * The states of the process, the order in which a stop goes through them, and the end of a process that cannot
 * continue.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { problemText } from '../../base/error-message.ts';
import type { Logger } from '../../base/log/logger.ts';
import { nameFullDisk } from './system-limits.ts';

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

/** Ends the process. `where` names what failed, `cause` is the error. */
export type Fatal = (where: string, cause: unknown) => void;

export interface FatalSteps {
  readonly logger: Logger;
  /** The folder with the state; null if there is none. */
  readonly folder: string | null;
  /** Prevents further answers; resolves when none can be sent any more. */
  silence(): Promise<void>;
  /** Flushes the log and ends the process. */
  end(cause: unknown): void;
}

/** How long to wait for LMDB to report the cause of a failed commit, which arrives after the failure. */
const TRUE_CAUSE_MS = 1000;

/** Only the first failure is reported: later ones are its consequences. */
export function createFatal({ logger, folder, silence, end }: FatalSteps): Fatal {
  let failed = false;

  async function fail(where: string, cause: unknown): Promise<void> {
    const silenced = silence();
    const reported = await trueCause(cause);
    const found = folder === null ? reported : nameFullDisk(reported, folder);
    logger.write('CRITICAL', 'process', `Ending after a failure: ${where}: ${problemText(found)}`);
    await silenced;
    end(found);
  }

  return (where, cause) => {
    if (failed) return;
    failed = true;
    void fail(where, cause);
  };
}

/** A failed commit of LMDB carries a promise that rejects with the reason, such as a full disk. */
async function trueCause(cause: unknown): Promise<unknown> {
  if (!(cause instanceof Error) || !('commitError' in cause)) return cause;
  const reason = Promise.resolve(cause.commitError).catch((found: unknown) => found);
  const patience = new Promise((resolve) => setTimeout(resolve, TRUE_CAUSE_MS));
  return (await Promise.race([reason, patience])) ?? cause;
}
