/**
 * Heartbeats are acknowledged before they are stored, so a crash loses the nonces of the last ones. The
 * range of their signing times is therefore stored with each flush. A heartbeat signed within that range is
 * acknowledged at once; the nonce of any other is durable first. After a crash everything signed in the
 * range is refused, whatever the clock was set to meanwhile.
 */
import type { TimeRange } from '../../store/store.ts';
import { createRefusedTimes } from './refused-times.ts';

export interface UnstoredTimes {
  /** Whether a heartbeat signed at that time may be acknowledged before it is stored. */
  covers(signedAt: number): boolean;
  /** A heartbeat signed at that time was accepted. Call it of the start first. */
  noteAccepted(signedAt: number): void;
  /** Whether a heartbeat signed at that time is not covered only because the range was stored too long ago. */
  isBeyondStoredRange(signedAt: number, now: number): boolean;
  /** The ranges to store with a flush that begins now. Call `stored` once it is on disk. */
  next(now: number): readonly TimeRange[];
  stored(): void;
}

export interface UnstoredTimesOptions {
  readonly toleranceMs: number;
  /** How far ahead of the authority's clock a heartbeat may be signed without being durable first. */
  readonly reserveMs: number;
  /** Ranges of processes that crashed, which have to be stored as well. */
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
    // Who signs ahead of the clock waits for the disk in any case.
    isBeyondStoredRange: (signedAt, now) => signedAt > until && signedAt <= now,
    next(now) {
      // A node whose clock is ahead must not make the range refuse what others sign after a crash.
      newest = Math.min(newest, now);
      coming = [now - toleranceMs - 1, newest + reserveMs];
      // What both ranges cover may be acknowledged while either of them is the stored one.
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
