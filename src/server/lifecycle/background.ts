/**
 * Periodic work. Runs of one job never overlap, a failure is logged, the last success is reported, and a
 * stop waits for running jobs.
 */

import { problemText } from '../../base/error-message.ts';
import type { Logger } from '../../base/log/logger.ts';
import type { After } from '../../base/runtime.ts';

type Work = () => Promise<void> | void;

export type Background = ReturnType<typeof createBackground>;

export interface BackgroundOptions {
  readonly after: After;
  readonly logger: Logger;
  succeeded(job: string): void;
}

export function createBackground({ after, logger, succeeded }: BackgroundOptions) {
  /** Each cancels the next run of a job. */
  const cancels = new Map<string, () => void>();
  const jobs = new Map<string, Work>();
  const running = new Map<string, Promise<void>>();
  let stopped = false;

  /**
   * Runs a job once more, after the current run if there is one, no matter who requested that; rejects if the run fails
   * or there is no such job.
   */
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

  /** Like `runNow`, but logs a failure instead of rejecting. */
  async function attempt(name: string): Promise<void> {
    try {
      await runNow(name);
    } catch (cause) {
      logger.write('ERROR', 'background', `${name} failed: ${problemText(cause)}`);
    }
  }

  function schedule(name: string, periodMs: number): void {
    if (stopped) return;
    const run = () => attempt(name).then(() => schedule(name, periodMs));
    cancels.set(name, after(periodMs, run));
  }

  return {
    /**
     * Runs the work one period from now, and again one period after each run ends; if the period is null, only when it
     * is asked for.
     */
    start(name: string, periodMs: number | null, work: Work): void {
      jobs.set(name, work);
      if (periodMs !== null) schedule(name, periodMs);
    },
    runNow,
    attempt,
    /** Starts no further runs; resolves when all running jobs have ended. */
    async stop(): Promise<void> {
      stopped = true;
      for (const cancel of cancels.values()) cancel();
      await Promise.allSettled(running.values());
    },
  };
}
