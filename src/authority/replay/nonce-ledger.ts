/**
 * Durable replay protection [core-2-3]: operator, join and renewal nonces, in buckets of one
 * minute, so that forgetting a minute is one step however many nonces it holds.
 */
import { hash } from 'node:crypto';
import type { SpentNonce, TimeRange } from '../../store/store.ts';
import { createForgottenTimes } from './forgotten-times.ts';

const BUCKET_MS = 60_000;

export interface NonceLedger {
  isSpent(scope: string, nonce: string): boolean;
  /** Whether nonces of requests that were signed then are forgotten: such a request may be a replay. */
  isForgotten(signedAt: number): boolean;
  /** Marks the nonce as spent at once and returns what the store has to keep. */
  spend(scope: string, nonce: string, signedAt: number): SpentNonce;
  restore(nonce: SpentNonce): void;
  /**
   * Forgets what both clocks have passed, so that none that is set and set back lets a nonce be used again.
   * Returns the instant before which the store may forget, too.
   */
  forget(now: number): number;
  /** When the requests were signed whose nonces are forgotten: no clock makes them current again. */
  forgottenTimes(): readonly TimeRange[];
}

interface Bucket {
  readonly digests: Set<string>;
  /** On the monotonic clock: when the last of them can no longer be replayed. */
  heldUntil: number;
}

/** `keepMs` is how long a nonce can still be replayed: at least twice the clock tolerance. */
export function createNonceLedger(
  keepMs: number,
  elapsed: () => number,
  forgotten: readonly TimeRange[],
): NonceLedger {
  const forgottenTimes = createForgottenTimes(forgotten);
  /** By the minute of the wall clock that they are forgotten after. */
  const buckets = new Map<number, Bucket>();

  /** A nonce of an earlier run is held as long as one that is spent now: that run's clock is not known. */
  function add({ digest, forgetAt }: SpentNonce): void {
    const minute = Math.ceil(forgetAt / BUCKET_MS);
    const bucket = buckets.get(minute) ?? { digests: new Set(), heldUntil: 0 };
    bucket.digests.add(digest);
    bucket.heldUntil = elapsed() + keepMs;
    buckets.set(minute, bucket);
  }

  return {
    isSpent(scope, nonce) {
      const digest = digestOf(scope, nonce);
      for (const { digests } of buckets.values()) if (digests.has(digest)) return true;
      return false;
    },
    isForgotten: forgottenTimes.has,
    spend(scope, nonce, signedAt) {
      const spent = { digest: digestOf(scope, nonce), forgetAt: signedAt + keepMs };
      add(spent);
      return spent;
    },
    restore: add,
    forget(now) {
      const at = elapsed();
      let before = Math.floor(now / BUCKET_MS) * BUCKET_MS;
      for (const [minute, { heldUntil }] of buckets) {
        const end = minute * BUCKET_MS;
        if (end <= now && heldUntil < at) {
          buckets.delete(minute);
          // `forgetAt` is `keepMs` after the timestamp, so these are the timestamps of the whole bucket. They
          // are older than any that passes, unless the clock is set back.
          forgottenTimes.add([end - BUCKET_MS - keepMs, end - keepMs], now);
        } else before = Math.min(before, end - BUCKET_MS);
      }
      return before;
    },
    forgottenTimes: forgottenTimes.all,
  };
}

function digestOf(scope: string, nonce: string): string {
  return hash('sha256', `${scope}\n${nonce}`, 'base64').slice(0, 24);
}
