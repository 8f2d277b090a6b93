/**
 * Confirms with the database that this process still holds the lease. Data in memory is current only if nobody else
 * became the holder before the request arrived, and no local clock shows that, because a paused machine does not count
 * the time.
 *
 * All waiting callers share one query. A successful statement that only the holder can execute, such as a commit, also
 * serves as confirmation.
 */
import { type LeaseClock, pauseOn } from './clocks.ts';
import type { LeaseTable } from './lease-table.ts';

export type Confirmations = ReturnType<typeof createConfirmations>;

export interface ConfirmationOptions {
  readonly clock: LeaseClock;
  /** Opens a separate connection: a renewal waits for disks and standbys, and reads must not wait for it. */
  connect(): Promise<LeaseTable>;
  /** See `LeaseTable`. */
  ask(table: LeaseTable): Promise<boolean | null>;
  /** Called when another process is the holder. */
  lost(): void;
  /** Called with the time that the database took to answer. */
  answered(milliseconds: number): void;
}

/** The interval between two queries in milliseconds; under load, each one serves many callers. */
const APART_MS = 1;
/** The delay before a retry if the database did not answer, or if the lease expired without a new holder. */
const AGAIN_MS = 50;

interface Waiter {
  readonly time: number;
  readonly resolve: (isHolder: boolean) => void;
}

export function createConfirmations(options: ConfirmationOptions) {
  const { clock } = options;
  let heldAt = Number.NEGATIVE_INFINITY;
  let waiters: Waiter[] = [];
  let table: LeaseTable | null = null;
  let isAsking = false;
  let isOver = false;

  /** Records that a statement that only the holder can execute, sent at this monotonic time, succeeded. */
  function note(sentAt: number): void {
    if (isOver || sentAt <= heldAt) return;
    heldAt = sentAt;
    const known = waiters.filter(({ time }) => time <= heldAt);
    waiters = waiters.filter(({ time }) => time > heldAt);
    for (const { resolve } of known) resolve(true);
  }

  async function askWhileAwaited(): Promise<void> {
    while (waiters.length > 0) {
      const sentAt = clock.elapsed();
      const wait = (await ask(sentAt)) ? sentAt + APART_MS - clock.elapsed() : AGAIN_MS;
      if (wait > 0 && waiters.length > 0) await pauseOn(clock, wait);
    }
    isAsking = false;
  }

  /** False if the database must be asked again. */
  async function ask(sentAt: number): Promise<boolean> {
    try {
      table ??= await options.connect();
      const isAlive = await options.ask(table);
      options.answered(clock.elapsed() - sentAt);
      if (isAlive === null) options.lost();
      else if (isAlive) note(sentAt);
      return isAlive !== false;
    } catch {
      leave();
      return false;
    } finally {
      if (isOver) leave();
    }
  }

  function leave(): void {
    void table?.disconnect();
    table = null;
  }

  return {
    note,
    /**
     * Null if this process is known to have been the holder at this monotonic time. Otherwise resolves once that is
     * known, with false if it is no longer the holder.
     */
    since(time: number): Promise<boolean> | null {
      if (isOver) return Promise.resolve(false);
      if (time <= heldAt) return null;
      return new Promise((resolve) => {
        waiters.push({ time, resolve });
        if (isAsking) return;
        isAsking = true;
        // By then all calls from the same message have arrived and share the query.
        queueMicrotask(() => void askWhileAwaited());
      });
    },
    /** Call when this process is no longer the holder. */
    end(): void {
      isOver = true;
      for (const { resolve } of waiters) resolve(false);
      waiters = [];
      leave();
    },
  };
}
