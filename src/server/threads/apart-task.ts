/** The other side of `apart.ts`: a process that carries out one task, and ends with it or with the service. */
import { setPriority } from 'node:os';
import type { Outcome } from './apart.ts';

const PRIORITY = 10;

export function carryOutTask<Task, Result>(work: (task: Task) => Promise<Result>): void {
  giveWay();
  // A stop is the service's decision, also where the whole group of processes gets the signal.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => undefined);
  process.once('disconnect', endWithoutService);
  process.once('message', (task: Task) => void outcomeOf(() => work(task)).then(report));
}

/** A confined service, such as the sample for systemd, may not choose priorities. */
function giveWay(): void {
  try {
    setPriority(PRIORITY);
  } catch {
    // Its work is done all the same.
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

/** Nobody catches it. What is not complete is removed by the next start. */
function endWithoutService(): never {
  throw new Error('The service that wanted this has ended');
}
