/**
 * Periodic work. Runs of one job never overlap, a failure is logged, the last success is reported, and a
 * stop waits for running jobs.
 */
import type { Logger } from '../../base/log/logger.ts';
import { problemText } from '../../base/log/problem.ts';

export interface Job {
  /** Runs the job once more, after the current run if there is one; rejects if that run fails. */
  runNow(): Promise<void>;
  /** Like `runNow`, but logs a failure instead of rejecting. */
  attempt(): Promise<void>;
}

export interface Background {
  /** Runs the work one period from now, and again one period after each run ends. */
  start(name: string, periodMs: number, work: () => Promise<void> | void): Job;
  /** Starts no further runs; resolves when all running jobs have ended. */
  stop(): Promise<void>;
}

export function createBackground(logger: Logger, succeeded: (job: string) => void): Background {
  const timers = new Map<string, NodeJS.Timeout>();
  const running = new Map<string, Promise<void>>();
  let stopped = false;

  function start(name: string, periodMs: number, work: () => Promise<void> | void): Job {
    async function run(): Promise<void> {
      await work();
      succeeded(name);
    }

    /** Runs are sequential, no matter who requested them. */
    function runNow(): Promise<void> {
      const before = running.get(name) ?? Promise.resolve();
      const current = before.then(run, run);
      running.set(name, current);
      return current;
    }

    function schedule(): void {
      if (stopped) return;
      timers.set(
        name,
        setTimeout(() => void attempt().then(schedule), periodMs),
      );
    }

    async function attempt(): Promise<void> {
      try {
        await runNow();
      } catch (cause) {
        logger.write('ERROR', 'background', `${name} failed: ${problemText(cause)}`);
      }
    }

    schedule();
    return { runNow, attempt };
  }

  return {
    start,
    async stop() {
      stopped = true;
      for (const timer of timers.values()) clearTimeout(timer);
      await Promise.allSettled(running.values());
    },
  };
}
