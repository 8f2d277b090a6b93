/**
 * Replay protection (wire rules 2.3). Operator, join and renewal nonces are durable and kept in buckets
 * of one minute, so that forgetting a minute is one step however many nonces it holds. Heartbeat nonces
 * live in a bounded window per node key, as IPsec's anti-replay window does (RFC 4303, 3.4.3).
 */
import { createHash } from 'node:crypto';
import type { SpentNonce } from '../store/store.ts';

const BUCKET_MS = 60_000;
const WINDOW_SIZE = 256;

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
  return createHash('sha256').update(`${scope}\n${nonce}`).digest('base64').slice(0, 24);
}

export type WindowVerdict = 'fresh' | 'nonce_replay' | 'stale_timestamp';

export interface NonceWindows {
  /** Whether a request signed at `signedAt` with this nonce may be accepted; claims nothing. */
  check(nodeKey: string, nonce: string, signedAt: number): WindowVerdict;
  claim(nodeKey: string, nonce: string, signedAt: number, now: number): void;
  /** Refuses everything this node signed up to `signedAt`: what came before a restart. */
  raiseFloor(nodeKey: string, signedAt: number): void;
}

interface NonceWindow {
  /** Nothing signed at or before this instant is accepted. */
  floor: number;
  /** Accepted nonces and their timestamps, in the order of acceptance. */
  readonly accepted: Map<string, number>;
}

/** `globalFloor` refuses everything signed up to that instant by any node: see `Liveness`. */
export function createNonceWindows(toleranceMs: number, globalFloor: number): NonceWindows {
  const windows = new Map<string, NonceWindow>();

  function windowOf(nodeKey: string): NonceWindow {
    const known = windows.get(nodeKey);
    if (known !== undefined) return known;
    const created = { floor: globalFloor, accepted: new Map<string, number>() };
    windows.set(nodeKey, created);
    return created;
  }

  return {
    check(nodeKey, nonce, signedAt) {
      const known = windows.get(nodeKey);
      if (known?.accepted.has(nonce)) return 'nonce_replay';
      return signedAt <= (known?.floor ?? globalFloor) ? 'stale_timestamp' : 'fresh';
    },
    claim(nodeKey, nonce, signedAt, now) {
      const window = windowOf(nodeKey);
      dropOld(window, now - toleranceMs);
      window.accepted.set(nonce, signedAt);
    },
    raiseFloor(nodeKey, signedAt) {
      const window = windowOf(nodeKey);
      window.floor = Math.max(window.floor, signedAt);
    },
  };
}

/** Entries too old to be replayed go first; a full window gives up its first entry and raises its floor. */
function dropOld(window: NonceWindow, tooOld: number): void {
  for (const [nonce, signedAt] of window.accepted) {
    const full = window.accepted.size >= WINDOW_SIZE;
    if (signedAt >= tooOld && !full) return;
    window.accepted.delete(nonce);
    if (full) window.floor = Math.max(window.floor, signedAt);
  }
}
