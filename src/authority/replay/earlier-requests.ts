/**
 * Knows, after a start, which requests earlier processes may have accepted, and refuses them by their signing times.
 * The newest timestamp that each node signed is written with liveness, so it is complete after a clean stop. After a
 * crash, the last flush is missing. Everything signed before the start is then refused, as is everything in the ranges
 * that were stored for that case, no matter how the clock is set.
 */
import type { TimeRange } from '../../store/store.ts';

interface EarlierRequestsOptions {
  /** How far ahead of the clock heartbeats with non-durable nonces may have been signed. */
  readonly reserveMs: number;
  readonly toleranceMs: number;
  readonly now: () => number;
  /** Monotonic milliseconds. */
  readonly elapsed: () => number;
  /** The newest known timestamp of the node; 0 if there is none. */
  readonly newestSignedBy: (nodeKey: string) => number;
}

export function createEarlierRequests(options: EarlierRequestsOptions) {
  const { reserveMs, toleranceMs, now, elapsed, newestSignedBy } = options;
  let hasCrashed = false;
  let lost: readonly TimeRange[] = [];
  let lostTimes = createRefusedTimes(lost);
  let startedAt = Infinity;
  let crashFloor = Infinity;
  /** The floor of nodes whose newest timestamp is too far ahead. */
  let present = Infinity;
  let recentUntil = Infinity;

  function lose(ranges: readonly TimeRange[]): void {
    lost = ranges;
    lostTimes = createRefusedTimes(lost);
  }

  /** Whether requests signed up to this time may still look current by either clock, because both can be wrong. */
  function mayReturn(signedUntil: number): boolean {
    return now() <= signedUntil + toleranceMs || elapsed() <= recentUntil;
  }

  return {
    /** Call before `begin` if the earlier process crashed; it had stored these ranges for that case. */
    afterCrash(unstoredTimes: readonly TimeRange[]) {
      hasCrashed = true;
      lose(unstoredTimes);
    },
    /** Call before `begin` if the earlier process stored everything; of these ranges, only that of a restore applies. */
    afterStop: (unstoredTimes: readonly TimeRange[]) => lose(unstoredTimes.filter(isOfRestore)),
    /**
     * Call at startup; nothing is accepted before. `lastContactAt` is when the earlier process was last contacted by a
     * node, which is later than the start if the clock was set back in between.
     */
    begin(at: number, lastContactAt: number) {
      startedAt = at;
      crashFloor = hasCrashed ? at : 0;
      recentUntil = elapsed() + toleranceMs;
      const latestBefore = lastContactAt + reserveMs;
      // If the clock was set back further, earlier requests are too far ahead to pass, so nodes need not wait.
      const wasSetBack = lastContactAt > at && latestBefore <= at + toleranceMs;
      present = wasSetBack ? latestBefore : at;
    },
    /** Call when the clock was set back to `now`. */
    clockSetBack(at: number) {
      present = at;
    },
    /** Requests that the node signed up to this instant are refused. Applies until the node has a nonce window. */
    floorOf(nodeKey: string): number {
      const newest = newestSignedBy(nodeKey);
      // The timestamp was signed under a wrong clock, and must not lock the node out until that time.
      if (newest > now() + toleranceMs) return present;
      return Math.max(crashFloor, newest);
    },
    /** Everything made up to this instant is refused because of a crash; 0 if there was none. */
    crashFloor: () => crashFloor,
    /** Whether a crashed process may have accepted a heartbeat signed at this time. */
    mayBeLost: (signedAt: number) => lostTimes.has(signedAt),
    /**
     * Requests signed up to this instant are refused because the state was restored, and the lost state may have accepted
     * them. Null if there was no restore.
     */
    restoredUntil: (): number | null => lost.find(isOfRestore)?.[1] ?? null,
    /** The ranges that the next start must also know about if this process crashes. */
    lostTimes: (): readonly TimeRange[] =>
      lost.filter((range) => isOfRestore(range) || mayReturn(range[1])),
    /** Whether requests lost in a crash can still be replayed; the next start must then treat this stop as a crash. */
    mustStartAsCrashed(): boolean {
      if (!hasCrashed) return false;
      return mayReturn(startedAt) || lost.some(([, until]) => mayReturn(until));
    },
  };
}

/** A crash loses the signing times of a few seconds; a restore loses all earlier ones, for good [backup-6]. */
function isOfRestore([after]: TimeRange): boolean {
  return after === 0;
}

const AT_MOST = 16;

/**
 * The signing times of requests whose nonces are gone, because they were forgotten or lost in a crash. If the clock is
 * set back, those requests look current again, and only their timestamps show that they may be replays.
 */
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

interface UnstoredTimesOptions {
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
