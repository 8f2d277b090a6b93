/** The child's side of `apart.ts`: a process that carries out one task, and exits with it or with the service. */
import { setPriority } from 'node:os';
import type { Outcome } from './apart.ts';

const PRIORITY = 10;

export function carryOutTask<Task, Result>(work: (task: Task) => Promise<Result>): void {
  giveWay();
  // The service decides when to stop, even if the whole process group gets the signal.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => undefined);
  process.once('disconnect', endWithoutService);
  process.once('message', (task: Task) => void outcomeOf(() => work(task)).then(report));
}

/** A sandboxed service, such as the systemd sample, may not be allowed to change priorities. */
function giveWay(): void {
  try {
    setPriority(PRIORITY);
  } catch {
    // The task runs anyway.
  }
}

async function outcomeOf<Result>(work: () => Promise<Result>): Promise<Outcome<Result>> {
  try {
    return { ok: true, result: await work() };
  } catch (cause) {
    return { ok: false, problem: cause instanceof Error ? cause.message : String(cause) };
  }
}

function report(outcome: Outcome<unknown>): void {
  process.off('disconnect', endWithoutService);
  process.send?.(outcome, () => process.disconnect());
}

/** Not caught. Incomplete files are removed at the next start. */
function endWithoutService(): never {
  throw new Error('The service that started this task has ended');
}
