/**
 * Durable replay protection [core-2-3] for operator, join and renewal nonces. Nonces are kept in buckets of one minute,
 * so that forgetting a minute is a single step no matter how many nonces it contains.
 */
import { hash } from 'node:crypto';
import { DELETE_ENVELOPE_TOLERANCE } from '../../protocol/contract/claims.ts';
import type { SpentNonce, TimeRange } from '../../store/store.ts';
import { createRefusedTimes } from './earlier-requests.ts';

const BUCKET_MS = 60_000;

/** How long a nonce is kept: it must outlive every timestamp that it could be replayed with. */
function keepMs(toleranceMs: number): number {
  return 2 * Math.max(toleranceMs, DELETE_ENVELOPE_TOLERANCE) + 60_000;
}

/**
 * The shortest that any tolerance makes it. Rows say when a nonce could be forgotten then: the next process, which may
 * have another tolerance, must know when the request was signed.
 */
const SHORTEST_KEEP_MS = keepMs(0);

interface Bucket {
  readonly digests: Set<string>;
  /** When the last of the nonces can no longer be replayed, according to the monotonic clock. */
  heldUntil: number;
}

export function createNonceLedger(toleranceMs: number, elapsed: () => number) {
  const heldMs = keepMs(toleranceMs);
  /** How much later than the rows say nonces are forgotten. */
  const longerMs = heldMs - SHORTEST_KEEP_MS;
  let forgottenTimes = createRefusedTimes([]);
  /** Keyed by the wall clock minute after which, by their rows, the nonces may be forgotten. */
  const buckets = new Map<number, Bucket>();
  let newestRestored = 0;
  const digestOf = rememberingLast(nonceDigest);

  /**
   * A nonce from an earlier run is kept as long as one that is spent now, because the clock of that run is unknown.
   */
  function add({ digest, forgetAt }: SpentNonce): void {
    const minute = Math.ceil(forgetAt / BUCKET_MS);
    const bucket = buckets.get(minute) ?? { digests: new Set(), heldUntil: 0 };
    bucket.digests.add(digest);
    bucket.heldUntil = elapsed() + heldMs;
    buckets.set(minute, bucket);
  }

  /** The range of timestamps in a bucket. */
  function signedIn(minute: number): TimeRange {
    const until = minute * BUCKET_MS - SHORTEST_KEEP_MS;
    return [until - BUCKET_MS, until];
  }

  return {
    isSpent(scope: string, nonce: string): boolean {
      const digest = digestOf(scope, nonce);
      for (const { digests } of buckets.values()) if (digests.has(digest)) return true;
      return false;
    },
    /** Whether an earlier process may have spent the nonce of a request signed at this time. */
    isInDoubt: (signedAt: number) => signedAt <= newestRestored,
    /** Whether nonces of requests signed at this time were forgotten, so that the request may be a replay. */
    isForgotten: (signedAt: number) => forgottenTimes.has(signedAt),
    /** Immediately marks the nonce as spent, and returns the row for the store. */
    spend(scope: string, nonce: string, signedAt: number): SpentNonce {
      const spent = { digest: digestOf(scope, nonce), forgetAt: signedAt + SHORTEST_KEEP_MS };
      add(spent);
      return spent;
    },
    restore(nonce: SpentNonce) {
      newestRestored = Math.max(newestRestored, nonce.forgetAt - SHORTEST_KEEP_MS);
      add(nonce);
    },
    /** Replaces the known forgotten times with the stored ones, and drops the nonces of those times. */
    restoreForgotten(times: readonly TimeRange[]) {
      forgottenTimes = createRefusedTimes(times);
      for (const minute of buckets.keys()) {
        const [after, until] = signedIn(minute);
        if (times.some(([from, to]) => from <= after && until <= to)) buckets.delete(minute);
      }
    },
    /**
     * Forgets nonces that have expired according to both clocks, so that setting the clock forward and back does not allow
     * a nonce to be reused. Returns the instant before which the store may also forget nonces.
     */
    forget(now: number): number {
      const at = elapsed();
      const due = now - longerMs;
      let before = Math.floor(due / BUCKET_MS) * BUCKET_MS;
      for (const [minute, { heldUntil }] of buckets) {
        const end = minute * BUCKET_MS;
        if (end <= due && heldUntil < at) {
          buckets.delete(minute);
          // These timestamps are too old to be accepted, but could become acceptable if the clock is set back.
          forgottenTimes.add(signedIn(minute), now);
        } else before = Math.min(before, end - BUCKET_MS);
      }
      return before;
    },
    /** The signing times of requests whose nonces were forgotten; they stay refused no matter how the clock is set. */
    forgottenTimes: (): readonly TimeRange[] => forgottenTimes.all(),
  };
}

/** Caches the last digest, because a nonce is first checked and then immediately spent. */
function rememberingLast(digestOf: typeof nonceDigest): typeof nonceDigest {
  let last: { scope: string; nonce: string; digest: string } | null = null;
  return (scope, nonce) => {
    if (last === null || nonce !== last.nonce || scope !== last.scope) {
      last = { scope, nonce, digest: digestOf(scope, nonce) };
    }
    return last.digest;
  };
}

/** The stored form of a nonce. */
export function nonceDigest(scope: string, nonce: string): string {
  return hash('sha256', `${scope}\n${nonce}`, 'base64').slice(0, 24);
}
