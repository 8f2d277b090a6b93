/** A queue of units to be stored. Units that arrive while others are written are written together in the next flush. */
import type { Unit } from './store.ts';
import type { EncodedUnit } from './units.ts';

export interface PendingUnit {
  readonly unit: EncodedUnit;
  readonly resolve: (revision: number) => void;
  readonly reject: (cause: unknown) => void;
}

export interface UnitQueue {
  commit(unit: Unit): Promise<number>;
  /** Resolves when no unit is waiting or being written. */
  settled(): Promise<void>;
}

export interface UnitQueueOptions {
  /** Null while units can be stored; otherwise the reason why not. */
  failure(): string | null;
  /** Throws if the unit cannot be stored. */
  encode(unit: Unit): EncodedUnit;
  /** Removes some units from the front of the queue and settles them. */
  flush(waiting: PendingUnit[]): Promise<void>;
}

export function createUnitQueue({ failure, encode, flush }: UnitQueueOptions): UnitQueue {
  const waiting: PendingUnit[] = [];
  let flushing: Promise<void> | null = null;

  async function flushAll(): Promise<void> {
    // Units of one turn of the event loop belong in one flush, so wait until the turn is over.
    await Promise.resolve();
    while (waiting.length > 0) await flush(waiting);
    flushing = null;
  }

  return {
    commit: (unit) =>
      new Promise((resolve, reject) => {
        const problem = failure();
        if (problem !== null) throw new Error(problem);
        waiting.push({ unit: encode(unit), resolve, reject });
        flushing ??= flushAll();
      }),
    async settled() {
      await flushing;
    },
  };
}
