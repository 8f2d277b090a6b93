/**
 * Durable replay protection (wire rules 2.3): operator, join and renewal nonces, in buckets of one
 * minute, so that forgetting a minute is one step however many nonces it holds.
 */
import { hash } from 'node:crypto';
import type { SpentNonce } from '../../store/store.ts';

const BUCKET_MS = 60_000;

export interface NonceLedger {
  isSpent(scope: string, nonce: string): boolean;
  /** Marks the nonce as spent at once and returns what the store has to keep. */
  spend(scope: string, nonce: string, at: number): SpentNonce;
  restore(nonce: SpentNonce): void;
  forget(now: number): void;
}

/** `keepMs` is how long a nonce can still be replayed: at least twice the clock tolerance. */
export function createNonceLedger(keepMs: number): NonceLedger {
  const buckets = new Map<number, Set<string>>();

  function add(nonce: SpentNonce): void {
    const start = Math.ceil(nonce.forgetAt / BUCKET_MS);
    const bucket = buckets.get(start) ?? new Set();
    buckets.set(start, bucket.add(nonce.digest));
  }

  return {
    isSpent(scope, nonce) {
      const digest = digestOf(scope, nonce);
      for (const bucket of buckets.values()) if (bucket.has(digest)) return true;
      return false;
    },
    spend(scope, nonce, at) {
      const spent = { digest: digestOf(scope, nonce), forgetAt: at + keepMs };
      add(spent);
      return spent;
    },
    restore: add,
    forget(now) {
      for (const start of buckets.keys()) if (start * BUCKET_MS < now) buckets.delete(start);
    },
  };
}

function digestOf(scope: string, nonce: string): string {
  return hash('sha256', `${scope}\n${nonce}`, 'base64').slice(0, 24);
}
