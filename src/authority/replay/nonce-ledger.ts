/**
 * Durable replay protection [core-2-3]: operator, join and renewal nonces, in buckets of one
 * minute, so that forgetting a minute is one step however many nonces it holds.
 */
import { hash } from 'node:crypto';
import type { SpentNonce, TimeRange } from '../../store/store.ts';
import { createRefusedTimes } from './refused-times.ts';

const BUCKET_MS = 60_000;

export interface NonceLedger {
  isSpent(scope: string, nonce: string): boolean;
  /** Whether the nonce of a request signed at that time may have been spent by an earlier process. */
  isInDoubt(signedAt: number): boolean;
  /** Whether nonces of requests signed at that time are forgotten: such a request may be a replay. */
  isForgotten(signedAt: number): boolean;
  /** Marks the nonce as spent at once and returns the row for the store. */
  spend(scope: string, nonce: string, signedAt: number): SpentNonce;
  restore(nonce: SpentNonce): void;
  /** The stored times replace what is known; nonces of those times need not be known any more. */
  restoreForgotten(times: readonly TimeRange[]): void;
  /**
   * Forgets nonces that have expired by both clocks, so that a clock that is set forward and back does not
   * let a nonce be used again. Returns the instant before which the store may forget them, too.
   */
  forget(now: number): number;
  /** The signing times of requests whose nonces are forgotten; no clock makes them current again. */
  forgottenTimes(): readonly TimeRange[];
}

interface Bucket {
  readonly digests: Set<string>;
  /** When the last of them can no longer be replayed, by the monotonic clock. */
  heldUntil: number;
}

/** `keepMs` is how long a nonce can be replayed: at least twice the clock tolerance. */
export function createNonceLedger(keepMs: number, elapsed: () => number): NonceLedger {
  let forgottenTimes = createRefusedTimes([]);
  /** Keyed by the minute of the wall clock after which they are forgotten. */
  const buckets = new Map<number, Bucket>();
  let newestRestored = 0;
  const digestOf = rememberingLast(nonceDigest);

  /**
   * A nonce of an earlier run is held as long as one that is spent now, because the clock of that run is
   * unknown.
   */
  function add({ digest, forgetAt }: SpentNonce): void {
    const minute = Math.ceil(forgetAt / BUCKET_MS);
    const bucket = buckets.get(minute) ?? { digests: new Set(), heldUntil: 0 };
    bucket.digests.add(digest);
    bucket.heldUntil = elapsed() + keepMs;
    buckets.set(minute, bucket);
  }

  /** `forgetAt` is `keepMs` after the timestamp, so these are the timestamps of the whole bucket. */
  function signedIn(minute: number): TimeRange {
    const end = minute * BUCKET_MS;
    return [end - BUCKET_MS - keepMs, end - keepMs];
  }

  return {
    isSpent(scope, nonce) {
      const digest = digestOf(scope, nonce);
      for (const { digests } of buckets.values()) if (digests.has(digest)) return true;
      return false;
    },
    isInDoubt: (signedAt) => signedAt <= newestRestored,
    isForgotten: (signedAt) => forgottenTimes.has(signedAt),
    spend(scope, nonce, signedAt) {
      const spent = { digest: digestOf(scope, nonce), forgetAt: signedAt + keepMs };
      add(spent);
      return spent;
    },
    restore(nonce) {
      newestRestored = Math.max(newestRestored, nonce.forgetAt - keepMs);
      add(nonce);
    },
    restoreForgotten(times) {
      forgottenTimes = createRefusedTimes(times);
      for (const minute of buckets.keys()) {
        const [after, until] = signedIn(minute);
        if (times.some(([from, to]) => from <= after && until <= to)) buckets.delete(minute);
      }
    },
    forget(now) {
      const at = elapsed();
      let before = Math.floor(now / BUCKET_MS) * BUCKET_MS;
      for (const [minute, { heldUntil }] of buckets) {
        const end = minute * BUCKET_MS;
        if (end <= now && heldUntil < at) {
          buckets.delete(minute);
          // They are older than any acceptable timestamp, unless the clock is set back.
          forgottenTimes.add(signedIn(minute), now);
        } else before = Math.min(before, end - BUCKET_MS);
      }
      return before;
    },
    forgottenTimes: () => forgottenTimes.all(),
  };
}

/** A nonce is judged and then spent at once. */
function rememberingLast(digestOf: typeof nonceDigest): typeof nonceDigest {
  let last: { scope: string; nonce: string; digest: string } | null = null;
  return (scope, nonce) => {
    if (last === null || nonce !== last.nonce || scope !== last.scope) {
      last = { scope, nonce, digest: digestOf(scope, nonce) };
    }
    return last.digest;
  };
}

/** What is stored of a nonce. */
export function nonceDigest(scope: string, nonce: string): string {
  return hash('sha256', `${scope}\n${nonce}`, 'base64').slice(0, 24);
}
