/** Counts formatted for people. */

const NUMBERS = new Intl.NumberFormat('en');

export function shownCount(count: number): string {
  return NUMBERS.format(count);
}

export function counted(count: number, one: string, many = `${one}s`): string {
  return `${shownCount(count)} ${count === 1 ? one : many}`;
}
