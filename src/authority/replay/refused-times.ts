/**
 * The signing times of requests whose nonces are gone, because they were forgotten or lost in a crash. If the clock is
 * set back, those requests look current again, and only their timestamps show that they may be replays.
 */
import type { TimeRange } from '../../store/store.ts';

const AT_MOST = 16;

export function createRefusedTimes(stored: readonly TimeRange[]) {
  let ranges = stored;
  return {
    has: (signedAt: number) =>
      ranges.some(([after, until]) => signedAt > after && signedAt <= until),
    add(range: TimeRange, now: number) {
      const joined = joinTouching([...ranges, range].sort(([a], [b]) => a - b));
      ranges = joined.length > AT_MOST ? joinNearest(joined, now) : joined;
    },
    /** Sorted and disjoint. */
    all: (): readonly TimeRange[] => ranges,
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

export interface UnstoredTimesOptions {
  readonly toleranceMs: number;
  /** How far ahead of the authority's clock a heartbeat may be signed without being durable first. */
  readonly reserveMs: number;
  /** Ranges of crashed processes, which must be stored as well. */
  readonly lostTimes: () => readonly TimeRange[];
}

/**
 * Heartbeats are acknowledged before they are stored, so a crash loses the nonces of the last ones. Therefore, the
 * range of their signing times is stored with each flush. A heartbeat signed within that range is acknowledged
 * immediately; for any other heartbeat, the nonce must be durable first. After a crash, everything signed within the
 * range is refused, no matter how the clock was set in the meantime.
 */
export function createUnstoredTimes(options: UnstoredTimesOptions) {
  const { toleranceMs, reserveMs, lostTimes } = options;
  /** Nothing is covered before the first range is stored. */
  let after = Infinity;
  let until = -Infinity;
  let coming: TimeRange = [after, until];
  let newest = -Infinity;

  return {
    /** Whether a heartbeat signed at this time may be acknowledged before it is stored. */
    covers: (signedAt: number) => signedAt > after && signedAt <= until,
    /** Notes the signing time of an accepted heartbeat. Call this first with the time of the start. */
    noteAccepted(signedAt: number) {
      if (signedAt > newest) newest = signedAt;
    },
    /** Whether a heartbeat signed at this time is not covered only because the range was stored too long ago. */
    // Heartbeats signed ahead of the clock wait for the disk in any case.
    isBeyondStoredRange: (signedAt: number, now: number) => signedAt > until && signedAt <= now,
    /** The ranges to store with a flush that begins now. Call `stored` once they are on disk. */
    next(now: number): readonly TimeRange[] {
      // A node whose clock is ahead must not extend the range so far that other nodes are refused after a crash.
      newest = Math.min(newest, now);
      coming = [now - toleranceMs - 1, newest + reserveMs];
      // Until the flush completes, either range may be the stored one, so cover only what both contain.
      after = Math.max(after, coming[0]);
      until = Math.min(until, coming[1]);
      const ranges = createRefusedTimes(lostTimes());
      ranges.add(coming, now);
      return ranges.all();
    },
    stored() {
      [after, until] = coming;
    },
  };
}
