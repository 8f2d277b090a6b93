/**
 * Heartbeats are acknowledged before they are stored, so a crash loses the nonces of the last ones. Therefore, the
 * range of their signing times is stored with each flush. A heartbeat signed within that range is acknowledged
 * immediately; for any other heartbeat, the nonce must be durable first. After a crash, everything signed within the
 * range is refused, no matter how the clock was set in the meantime.
 */
import type { TimeRange } from '../../store/store.ts';
import { createRefusedTimes } from './refused-times.ts';

export interface UnstoredTimes {
  /** Whether a heartbeat signed at this time may be acknowledged before it is stored. */
  covers(signedAt: number): boolean;
  /** Notes the signing time of an accepted heartbeat. Call this first with the time of the start. */
  noteAccepted(signedAt: number): void;
  /** Whether a heartbeat signed at this time is not covered only because the range was stored too long ago. */
  isBeyondStoredRange(signedAt: number, now: number): boolean;
  /** The ranges to store with a flush that begins now. Call `stored` once they are on disk. */
  next(now: number): readonly TimeRange[];
  stored(): void;
}

export interface UnstoredTimesOptions {
  readonly toleranceMs: number;
  /** How far ahead of the authority's clock a heartbeat may be signed without being durable first. */
  readonly reserveMs: number;
  /** Ranges of crashed processes, which must be stored as well. */
  readonly lostTimes: () => readonly TimeRange[];
}

export function createUnstoredTimes(options: UnstoredTimesOptions): UnstoredTimes {
  const { toleranceMs, reserveMs, lostTimes } = options;
  /** Nothing is covered before the first range is stored. */
  let after = Infinity;
  let until = -Infinity;
  let coming: TimeRange = [after, until];
  let newest = -Infinity;

  return {
    covers: (signedAt) => signedAt > after && signedAt <= until,
    noteAccepted(signedAt) {
      if (signedAt > newest) newest = signedAt;
    },
    // Heartbeats signed ahead of the clock wait for the disk in any case.
    isBeyondStoredRange: (signedAt, now) => signedAt > until && signedAt <= now,
    next(now) {
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
