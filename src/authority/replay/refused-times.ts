/**
 * The signing times of requests whose nonces are gone, because they were forgotten or lost in a crash. If the clock is
 * set back, those requests look current again, and only their timestamps show that they may be replays.
 */
import type { TimeRange } from '../../store/store.ts';

const AT_MOST = 16;

export interface RefusedTimes {
  has(signedAt: number): boolean;
  add(range: TimeRange, now: number): void;
  /** Sorted and disjoint. */
  all(): readonly TimeRange[];
}

export function createRefusedTimes(stored: readonly TimeRange[]): RefusedTimes {
  let ranges = stored;
  return {
    has: (signedAt) => ranges.some(([after, until]) => signedAt > after && signedAt <= until),
    add(range, now) {
      const joined = joinTouching([...ranges, range].sort(([a], [b]) => a - b));
      ranges = joined.length > AT_MOST ? joinNearest(joined, now) : joined;
    },
    all: () => ranges,
  };
}

function joinTouching(sorted: readonly TimeRange[]): readonly TimeRange[] {
  const joined: TimeRange[] = [];
  for (const [after, until] of sorted) {
    const last = joined.at(-1);
    if (last === undefined || after > last[1]) joined.push([after, until]);
    else joined[joined.length - 1] = [last[0], Math.max(last[1], until)];
  }
  return joined;
}

/** Merges the two ranges with the smallest gap, but never across `now`, because that would refuse current requests. */
function joinNearest(ranges: readonly TimeRange[], now: number): readonly TimeRange[] {
  const gaps = ranges.slice(1).map(([next], index) => {
    const until = ranges[index]?.[1] ?? next;
    return until < now && now < next ? Infinity : next - until;
  });
  const nearest = gaps.indexOf(Math.min(...gaps));
  return joinTouching(
    ranges.map(([after, until], index) => [
      after,
      index === nearest ? (ranges[index + 1]?.[0] ?? until) : until,
    ]),
  );
}
