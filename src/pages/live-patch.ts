/**
 * The difference between two contents of a page, as operations on its keyed elements, which the script of the page
 * carries out. An element is sent in full when its text outside of nested keyed elements changed.
 */
import type { Html } from './html.ts';

/** Keys from the outermost keyed element inward. */
export type KeyPath = readonly string[];

export type Operation =
  /** Gives the element this form. */
  | readonly [kind: 'set', element: KeyPath, markup: string]
  | readonly [kind: 'remove', element: KeyPath]
  /** Adds an element before the one with that key, or at the end. */
  | readonly [kind: 'add', container: KeyPath, before: string | null, markup: string]
  | readonly [kind: 'move', element: KeyPath, before: string | null];

/** A message about a new version; without a patch, viewers fetch the page again. */
export interface LiveMessage {
  readonly topic?: string;
  readonly version?: string;
  readonly from?: string;
  readonly patch?: readonly Operation[];
}

/** Null when the contents differ outside of keyed elements. */
export function patchBetween(before: Html, after: Html): Operation[] | null {
  const operations: Operation[] = [];
  compare(before, after, [], operations);
  return operations.some(([, path]) => path.length === 0) ? null : operations;
}

function compare(before: Html, after: Html, path: KeyPath, operations: Operation[]): void {
  if (before.text === after.text) return;
  const [ownBefore, ownAfter] = [ownTexts(before), ownTexts(after)];
  const isPatchable = hasUniqueKeys(before) && hasUniqueKeys(after);
  if (isPatchable && haveSameKeys(before, after) && isEqual(ownBefore, ownAfter)) {
    compareParts(before, after, path, operations);
  } else if (
    isPatchable &&
    isList(ownBefore) &&
    isList(ownAfter) &&
    endsOf(ownBefore) === endsOf(ownAfter)
  ) {
    compareLists(before, after, path, operations);
  } else {
    operations.push(['set', path, after.text]);
  }
}

function hasUniqueKeys({ parts }: Html): boolean {
  return new Set(parts.map(({ key }) => key)).size === parts.length;
}

/** The text before, between and after the keyed elements. */
function ownTexts({ text, parts }: Html): string[] {
  const starts = [0, ...parts.map(({ end }) => end)];
  const ends = [...parts.map(({ start }) => start), text.length];
  return starts.map((start, index) => text.slice(start, ends[index]));
}

function haveSameKeys(before: Html, after: Html): boolean {
  return isEqual(
    before.parts.map(({ key }) => key),
    after.parts.map(({ key }) => key),
  );
}

function isEqual(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((text, index) => text === b[index]);
}

/** Whether the element contains nothing but keyed elements. */
function isList(own: readonly string[]): boolean {
  const isOneElement = /^\s*<[^<>]*>\s*<\/[^<>]*>\s*$/.test(endsOf(own));
  return isOneElement && own.slice(1, -1).every((text) => text === '');
}

function endsOf(own: readonly string[]): string {
  return own.length > 1 ? `${own[0]}${own.at(-1)}` : `${own[0]}`;
}

function compareParts(before: Html, after: Html, path: KeyPath, operations: Operation[]): void {
  const known = new Map(before.parts.map(({ key, content }) => [key, content]));
  for (const { key, content } of after.parts) {
    const earlier = known.get(key);
    if (earlier !== undefined) compare(earlier, content, [...path, key], operations);
  }
}

function compareLists(before: Html, after: Html, path: KeyPath, operations: Operation[]): void {
  const places = new Map(before.parts.map(({ key }, index) => [key, index]));
  const keys = new Set(after.parts.map(({ key }) => key));
  for (const key of places.keys()) if (!keys.has(key)) operations.push(['remove', [...path, key]]);
  const staying = longestRise(after.parts.map(({ key }) => places.get(key) ?? null));
  let next: string | null = null;
  for (const [index, { key, content }] of [...after.parts.entries()].reverse()) {
    if (!places.has(key)) operations.push(['add', path, next, content.text]);
    else if (!staying.has(index)) operations.push(['move', [...path, key], next]);
    next = key;
  }
  compareParts(before, after, path, operations);
}

/** The indexes of the longest increasing subsequence: these elements stay in place, and the others move. */
function longestRise(values: readonly (number | null)[]): Set<number> {
  /** For each length, the index of the lowest value that ends an increasing subsequence of that length. */
  const ends: number[] = [];
  const previous: (number | undefined)[] = [];
  for (const [index, value] of values.entries()) {
    if (value === null) continue;
    let [low, high] = [0, ends.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((values[ends[middle] ?? 0] ?? 0) < value) low = middle + 1;
      else high = middle;
    }
    previous[index] = ends[low - 1];
    ends[low] = index;
  }
  const rise = new Set<number>();
  for (let at = ends.at(-1); at !== undefined; at = previous[at]) rise.add(at);
  return rise;
}
