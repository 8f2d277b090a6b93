/** Counts formatted for people. */

const NUMBERS = new Intl.NumberFormat('en');

export function shownCount(count: number): string {
  return NUMBERS.format(count);
}
