/**
 * Whether this process is still the holder of the lease, as the database says. What the holder has in memory is current
 * for anyone who asks only if nobody else was the holder when the request had already come, and no clock of this machine
 * knows that: a machine that was paused has not counted the time.
 *
 * All who wait share one question. A statement that only the holder can carry out answers it too: after a commit there
 * is nothing to ask.
 */
import { type LeaseClock, pauseOn } from './lease-clock.ts';
import type { LeaseTable } from './lease-table.ts';

export interface Confirmations {
  /** A statement that only the holder can carry out, and that was sent at this monotonic time, has succeeded. */
  note(sentAt: number): void;
  /**
   * Null when this process is known to have been the holder at this monotonic time. Otherwise resolves when that is
   * known: false when it is the holder no more.
   */
  since(time: number): Promise<boolean> | null;
  /** From now on this process is the holder no more. */
  end(): void;
}

export interface ConfirmationOptions {
  readonly clock: LeaseClock;
  /** A connection of its own: a renewal waits for disks and standbys, and reads must not wait for it. */
  connect(): Promise<LeaseTable>;
  /** See `LeaseTable`. */
  ask(table: LeaseTable): Promise<boolean | null>;
  /** Another process is the holder. */
  lost(): void;
  /** The database has answered after this many milliseconds. */
  answered(milliseconds: number): void;
}

/** Between two questions, milliseconds: under load each answers many. */
const APART_MS = 1;
/** Before the database is asked again that did not answer, or in which the lease has run out without another holder. */
const AGAIN_MS = 50;

interface Waiter {
  readonly time: number;
  readonly resolve: (isHolder: boolean) => void;
}

export function createConfirmations(options: ConfirmationOptions): Confirmations {
  const { clock } = options;
  let heldAt = Number.NEGATIVE_INFINITY;
  let waiters: Waiter[] = [];
  let table: LeaseTable | null = null;
  let isAsking = false;
  let isOver = false;

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

  /** False when the database has to be asked again. */
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
    since(time) {
      if (isOver) return Promise.resolve(false);
      if (time <= heldAt) return null;
      return new Promise((resolve) => {
        waiters.push({ time, resolve });
        if (isAsking) return;
        isAsking = true;
        // All calls that came in one message have come by then, and need no question of their own.
        queueMicrotask(() => void askWhileAwaited());
      });
    },
    end() {
      isOver = true;
      for (const { resolve } of waiters) resolve(false);
      waiters = [];
      leave();
    },
  };
}
