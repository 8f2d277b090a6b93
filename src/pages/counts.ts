/** Numbers of things as people read them. */

const NUMBERS = new Intl.NumberFormat('en');

export function shownCount(count: number): string {
  return NUMBERS.format(count);
}
