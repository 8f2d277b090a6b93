/** Counts as people read them. */

const NUMBERS = new Intl.NumberFormat('en');

export function shownCount(count: number): string {
  return NUMBERS.format(count);
}

/** Such as "1 node" and "2 nodes", or, with a verb, "1 node has" and "2 nodes have". */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${shownCount(count)} ${count === 1 ? one : many}`;
}

/** Such as "1 of 12 nodes has" and "3 of 12 nodes have". */
export function countedOf(count: number, all: number, noun: string, [one, many]: Verb): string {
  return `${shownCount(count)} of ${counted(all, noun)} ${count === 1 ? one : many}`;
}

type Verb = readonly [one: string, many: string];
