/** The values of a row of the history: where each series has its own, and how two rows become one. */
import { SERIES, type SeriesKind, type SeriesName } from '../rows/history.ts';

/** The bounds of histograms, in seconds: for operations that clients wait for. */
export const REQUEST_SECONDS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1];
/** The same, for operations that wait for a disk or another instance. */
export const STORE_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1];

/** The times that wait for a disk have other buckets than those of requests. */
const STORE_TIMES: ReadonlySet<SeriesName> = new Set(['commit_time', 'flush_time']);

/** The upper bounds of the buckets of a time, in seconds; the last bucket has none. */
export function boundsOf(name: SeriesName): readonly number[] {
  return STORE_TIMES.has(name) ? STORE_SECONDS : REQUEST_SECONDS;
}

/** A level has how often it was measured, the sum and the largest. A time has how many fell into each bucket. */
function lengthOf(name: SeriesName, kind: SeriesKind): number {
  if (kind === 'count') return 1;
  return kind === 'level' ? 3 : boundsOf(name).length + 1;
}

export interface Place {
  readonly kind: SeriesKind;
  readonly start: number;
  readonly end: number;
}

const places = new Map<SeriesName, Place>();
let length = 0;
for (const { name, kind } of SERIES) {
  const start = length;
  length += lengthOf(name, kind);
  places.set(name, { kind, start, end: length });
}

/** The number of values in a row. */
export const CELLS = length;

/** The largest of a level is the only value that does not add up. */
const TAKES_LARGEST = new Uint8Array(CELLS);
for (const { kind, end } of places.values()) if (kind === 'level') TAKES_LARGEST[end - 1] = 1;

export function placeOf(name: SeriesName): Place {
  const place = places.get(name);
  if (place === undefined) throw new Error(`There is no series ${name}`);
  return place;
}

/** Adds the values of a row to those of another. Rows of earlier versions of the program may have fewer. */
export function mergeCells(into: number[], cells: readonly number[], from = 0, to = CELLS): void {
  for (let i = from; i < to; i += 1) {
    const [before = 0, more = 0] = [into[i], cells[i]];
    into[i] = TAKES_LARGEST[i] === 1 ? Math.max(before, more) : before + more;
  }
}
