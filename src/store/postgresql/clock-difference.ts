/** How far the clock of this machine is from that of the database, as far as an answer of the database shows. */

/** By the wall clock of the machine, milliseconds since the epoch. */
export interface Asked {
  readonly sentAt: number;
  readonly answeredAt: number;
}

/** Milliseconds by which the machine is at least ahead of `at`, or behind it if negative; 0 where it may be neither. */
export function clockDifference(at: number, { sentAt, answeredAt }: Asked): number {
  if (at < sentAt) return sentAt - at;
  return at > answeredAt ? answeredAt - at : 0;
}

/** Instances on clocks that differ more judge the same signed request differently. */
export const MOST_CLOCK_DIFFERENCE_MS = 1000;

/** Says so to an operator. */
export function clockSentence(aheadMs: number): string {
  const direction = aheadMs > 0 ? 'ahead of' : 'behind';
  const seconds = (Math.abs(aheadMs) / 1000).toFixed(1);
  return `The clock of this machine is ${seconds} s ${direction} that of the database; synchronize both, by NTP for example`;
}
