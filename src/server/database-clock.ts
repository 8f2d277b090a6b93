/** Logs when the clock of this machine and that of the database differ too much, and when they agree again. */
import type { Logger } from '../base/log/logger.ts';
import { clockSentence, MOST_CLOCK_DIFFERENCE_MS } from '../store/postgresql/clock-difference.ts';

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
