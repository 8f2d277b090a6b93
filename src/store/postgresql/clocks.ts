/** The clock that leases depend on, and how far the clocks of this machine and the database differ, by the database's answers. */
import type { Logger } from '../../base/log/logger.ts';
import { type After, type Runtime, systemAfter } from '../../base/runtime.ts';

/** By the wall clock of the machine, milliseconds since the epoch. */
export interface Asked {
  readonly sentAt: number;
  readonly answeredAt: number;
}

/**
 * The least number of milliseconds by which the machine is ahead of `at`, negative if behind; 0 if the clocks may
 * agree.
 */
export function clockDifference(at: number, { sentAt, answeredAt }: Asked): number {
  if (at < sentAt) return sentAt - at;
  return at > answeredAt ? answeredAt - at : 0;
}

/** Instances on clocks that differ more judge the same signed request differently. */
export const MOST_CLOCK_DIFFERENCE_MS = 1000;

/** A message for operators. */
export function clockSentence(aheadMs: number): string {
  const direction = aheadMs > 0 ? 'ahead of' : 'behind';
  const seconds = (Math.abs(aheadMs) / 1000).toFixed(1);
  return `The clock of this machine is ${seconds} s ${direction} the database clock; synchronize both, for example with NTP`;
}

/**
 * Hysteresis: after the clocks differed too much, they count as in agreement again only below this, so that small
 * changes do not each log a line.
 */
const AGREE_AGAIN_MS = MOST_CLOCK_DIFFERENCE_MS / 2;

/** Call the returned function with each measurement: by how many milliseconds the machine is ahead. */
export function followDatabaseClock(
  logger: Logger,
  measured: (aheadMs: number) => void,
): (aheadMs: number) => void {
  let differs = false;
  return (aheadMs) => {
    measured(aheadMs);
    const difference = Math.abs(aheadMs);
    if (!differs && difference > MOST_CLOCK_DIFFERENCE_MS) {
      differs = true;
      logger.write('WARNING', 'clock', clockSentence(aheadMs));
    } else if (differs && difference <= AGREE_AGAIN_MS) {
      differs = false;
      const text = 'The clock of this machine agrees with that of the database again';
      logger.write('INFO', 'clock', text);
    }
  };
}

/** The clock that leases depend on, separate from that of the service, which tests may set. */
export interface LeaseClock {
  /** Monotonic milliseconds. */
  elapsed(): number;
  readonly after: After;
}

export function leaseClock({ elapsed }: Pick<Runtime, 'elapsed'>): LeaseClock {
  return { elapsed, after: systemAfter };
}

export function pauseOn(clock: LeaseClock, milliseconds: number): Promise<void> {
  return new Promise((resolve) => void clock.after(milliseconds, resolve));
}
