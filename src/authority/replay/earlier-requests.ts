/**
 * What a start knows about requests that earlier processes accepted, and which of them it therefore refuses
 * by their signing times. The newest timestamp that each node signed is written with liveness, so it is
 * complete after a clean stop. After a crash the last flush is missing: everything signed before the start
 * is refused, and whatever the clock is set to, everything in the ranges that were stored for that case.
 */
import type { TimeRange } from '../../store/store.ts';
import { createRefusedTimes } from './refused-times.ts';

export interface EarlierRequests {
  /** The earlier process crashed, and had stored these ranges for that case. Call before `begin`. */
  afterCrash(unstoredTimes: readonly TimeRange[]): void;
  /**
   * The start, before which nothing passes. `lastContactAt` is when the earlier process last heard of a node; later than
   * the start if the clock was set back between.
   */
  begin(startedAt: number, lastContactAt: number): void;
  /** Requests that the node signed up to this instant are refused; it applies until the node has a window. */
  floorOf(nodeKey: string): number;
  /** Whether a heartbeat signed at that time may have been accepted by a process that crashed. */
  mayBeLost(signedAt: number): boolean;
  /**
   * Requests that were signed up to this instant are refused because the state was restored: the one that was lost may
   * have accepted them. Null when there was no restore, or it was long before the start.
   */
  restoredUntil(): number | null;
  /** The ranges that the next start must know about, too, if this process crashes. */
  lostTimes(): readonly TimeRange[];
  /** Whether what a crash lost can still be replayed: then the next start must take this stop for a crash. */
  mustStartAsCrashed(): boolean;
}

export interface EarlierRequestsOptions {
  /** How far ahead of the clock heartbeats may have been signed whose nonces are not durable. */
  readonly reserveMs: number;
  readonly toleranceMs: number;
  readonly now: () => number;
  /** Monotonic milliseconds. */
  readonly elapsed: () => number;
  /** The newest known timestamp of the node; 0 when there is none. */
  readonly newestSignedBy: (nodeKey: string) => number;
}

export function createEarlierRequests(options: EarlierRequestsOptions): EarlierRequests {
  const { reserveMs, toleranceMs, now, elapsed, newestSignedBy } = options;
  let hasCrashed = false;
  let lost: readonly TimeRange[] = [];
  let lostTimes = createRefusedTimes(lost);
  let startedAt = Infinity;
  let crashFloor = Infinity;
  /** Nothing was accepted that was signed later, unless its nonce is durable. */
  let latestAccepted = Infinity;
  let recentUntil = Infinity;

  /** Whether requests signed up to that time may pass for current, by one of the clocks: either may be set. */
  function mayReturn(signedUntil: number): boolean {
    return now() <= signedUntil + toleranceMs || elapsed() <= recentUntil;
  }

  return {
    afterCrash(unstoredTimes) {
      hasCrashed = true;
      lost = unstoredTimes;
      lostTimes = createRefusedTimes(lost);
    },
    begin(at, lastContactAt) {
      startedAt = at;
      crashFloor = hasCrashed ? at : 0;
      recentUntil = elapsed() + toleranceMs;
      const latestBefore = lastContactAt + reserveMs;
      // What was accepted before a larger step is too far ahead to pass, and nodes need not wait for that time.
      const wasSetBack = lastContactAt > at && latestBefore <= at + toleranceMs;
      latestAccepted = wasSetBack ? latestBefore : at;
    },
    floorOf(nodeKey) {
      const newest = newestSignedBy(nodeKey);
      // It was signed under a wrong clock and must not lock the node out until that day.
      if (newest > now() + toleranceMs) return latestAccepted;
      return Math.max(crashFloor, newest);
    },
    mayBeLost: (signedAt) => lostTimes.has(signedAt),
    restoredUntil() {
      // A crash loses the times of some seconds, and a restore all that came before it [backup-6].
      return lost.find(([after]) => after === 0)?.[1] ?? null;
    },
    lostTimes: () => lost.filter(([, until]) => mayReturn(until)),
    mustStartAsCrashed() {
      if (!hasCrashed) return false;
      return mayReturn(startedAt) || lost.some(([, until]) => mayReturn(until));
    },
  };
}
