/**
 * Periodic work. Runs of one job never overlap, a failure is logged, the last success is reported, and a
 * stop waits for running jobs.
 */
import type { Logger } from '../../base/log/logger.ts';
import { problemText } from '../../base/log/problem.ts';

export interface Background {
  /**
   * Runs the work one period from now, and again one period after each run ends; if the period is null, only when it
   * is asked for.
   */
  start(name: string, periodMs: number | null, work: () => Promise<void> | void): void;
  /** Runs a job once more, after the current run if there is one; rejects if that run fails or there is no such job. */
  runNow(name: string): Promise<void>;
  /** Like `runNow`, but logs a failure instead of rejecting. */
  attempt(name: string): Promise<void>;
  /** Starts no further runs; resolves when all running jobs have ended. */
  stop(): Promise<void>;
}

export function createBackground(logger: Logger, succeeded: (job: string) => void): Background {
  const timers = new Map<string, NodeJS.Timeout>();
  const jobs = new Map<string, () => Promise<void> | void>();
  const running = new Map<string, Promise<void>>();
  let stopped = false;

  /** Runs are sequential, no matter who requested them. */
  function runNow(name: string): Promise<void> {
    async function run(): Promise<void> {
      const work = jobs.get(name);
      if (work === undefined) throw new Error(`There is no job ${name} here`);
      await work();
      succeeded(name);
    }
    const before = running.get(name) ?? Promise.resolve();
    const current = before.then(run, run);
    running.set(name, current);
    return current;
  }

  async function attempt(name: string): Promise<void> {
    try {
      await runNow(name);
    } catch (cause) {
      logger.write('ERROR', 'background', `${name} failed: ${problemText(cause)}`);
    }
  }

  function schedule(name: string, periodMs: number): void {
    if (stopped) return;
    const run = () => void attempt(name).then(() => schedule(name, periodMs));
    timers.set(name, setTimeout(run, periodMs));
  }

  return {
    start(name, periodMs, work) {
      jobs.set(name, work);
      if (periodMs !== null) schedule(name, periodMs);
    },
    runNow,
    attempt,
    async stop() {
      stopped = true;
      for (const timer of timers.values()) clearTimeout(timer);
      await Promise.allSettled(running.values());
    },
  };
}
