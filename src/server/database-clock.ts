/** Follows how far the clock of this machine is from that of the database, and says so when that matters. */
import type { Logger } from '../base/log/logger.ts';
import { clockSentence, MOST_CLOCK_DIFFERENCE_MS } from '../store/postgresql/clock-difference.ts';

/** Once they were too far apart, they agree again below this: no line for each of many small changes. */
const AGREE_AGAIN_MS = MOST_CLOCK_DIFFERENCE_MS / 2;

/** The returned function takes each comparison, in milliseconds by which the machine is ahead. */
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
      logger.write(
        'INFO',
        'clock',
        'The clock of this machine agrees with that of the database again',
      );
    }
  };
}
