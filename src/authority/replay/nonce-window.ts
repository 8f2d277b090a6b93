/**
 * Replay protection of heartbeats [core-2-3]: a bounded window of nonces per node key, as IPsec's
 * anti-replay window is (RFC 4303, 3.4.3). It lives in memory; a stored floor replaces it after a restart.
 */
import { detached } from '../../base/detached.ts';

/** A nonce is held this much longer than any timestamp it could come with is acceptable. */
const MARGIN_MS = 60_000;

export type WindowVerdict = 'fresh' | 'nonce_replay' | 'stale_timestamp';

export interface NonceWindows {
  /** Whether a request signed at `signedAt` with this nonce may be accepted; claims nothing. */
  check(nodeKey: string, nonce: string, signedAt: number): WindowVerdict;
  claim(nodeKey: string, nonce: string, signedAt: number, now: number): void;
  /** The clock was set back to `now`: floors after it must not refuse current requests. */
  clockSetBack(now: number): void;
  /** Examines some more windows and drops those with nothing but expired entries. */
  forgetIdle(now: number): void;
  /** The number of nodes that have a window. */
  count(): number;
}

/** Windows that one call of `forgetIdle` examines: about half a millisecond. */
const LOOKED_AT = 5000;

/**
 * The last accepted nonces of one node, oldest first, in a ring of plain numbers: one object per heartbeat
 * that lives for minutes is the most expensive kind of garbage.
 */
interface NonceWindow {
  /** Requests signed at or before this instant are refused. */
  floor: number;
  /** Entries of the ring, each a fingerprint and its signing time. */
  first: number;
  size: number;
  ring: number[];
}

/** Capacity of a full window, and of the ring of a new one: powers of two. */
export interface WindowSizes {
  readonly full: number;
  readonly first: number;
}

const SIZES: WindowSizes = { full: 256, first: 4 };

/**
 * A node has no window before its first claim. Until then `floorOf` gives its floor, with which its window
 * then begins: everything signed up to that instant belongs to an earlier run.
 */
export function createNonceWindows(
  toleranceMs: number,
  floorOf: (nodeKey: string) => number,
  sizes = SIZES,
): NonceWindows {
  const windows = new Map<string, NonceWindow>();
  let lookedAt = windows.entries();

  function tooOldAt(now: number): number {
    return now - toleranceMs - MARGIN_MS;
  }

  function windowOf(nodeKey: string): NonceWindow {
    const known = windows.get(nodeKey);
    if (known !== undefined) return known;
    const ring = emptyRing(sizes.first);
    const created = { floor: floorOf(nodeKey), first: 0, size: 0, ring };
    windows.set(detached(nodeKey), created);
    return created;
  }

  return {
    check(nodeKey, nonce, signedAt) {
      const known = windows.get(nodeKey);
      if (known !== undefined && holds(known, fingerprintOf(nonce))) return 'nonce_replay';
      return signedAt <= (known?.floor ?? floorOf(nodeKey)) ? 'stale_timestamp' : 'fresh';
    },
    claim(nodeKey, nonce, signedAt, now) {
      const window = windowOf(nodeKey);
      dropOld(window, { tooOld: tooOldAt(now), latest: now + toleranceMs, full: sizes.full });
      append(window, fingerprintOf(nonce), signedAt);
    },
    clockSetBack(now) {
      // What was accepted before is then refused as after a crash, because it was signed before now.
      for (const window of windows.values()) {
        if (window.floor > now + toleranceMs) window.floor = now;
      }
    },
    forgetIdle(now) {
      for (let i = 0; i < LOOKED_AT; i += 1) {
        const next = lookedAt.next();
        if (next.done === true) {
          lookedAt = windows.entries();
          return;
        }
        // The floor without a window is not lower than the newest timestamp that the node signed.
        if (isIdle(next.value[1], tooOldAt(now))) windows.delete(next.value[0]);
      }
    },
    count: () => windows.size,
  };
}

/**
 * 53 bits of a nonce. If two nonces of one node share them, a genuine request is refused, and the node
 * sends it again with another nonce. A chosen nonce cannot make requests of other nodes fail.
 */
function fingerprintOf(nonce: string): number {
  let low = 0x811c9dc5;
  let high = 0xc2b2ae35;
  for (let i = 0; i < nonce.length; i += 1) {
    const unit = nonce.charCodeAt(i);
    low = Math.imul(low ^ unit, 0x01000193);
    high = Math.imul(high ^ unit, 0x85ebca6b) ^ (low >>> 13);
  }
  return (high >>> 11) * 0x1_0000_0000 + (low >>> 0);
}

function holds({ first, size, ring }: NonceWindow, fingerprint: number): boolean {
  const mask = capacityOf(ring) - 1;
  for (let i = 0; i < size; i += 1) {
    if (ring[2 * ((first + i) & mask)] === fingerprint) return true;
  }
  return false;
}

/** Whether everything that the window refuses is refused only for its age. */
function isIdle({ floor, first, size, ring }: NonceWindow, tooOld: number): boolean {
  const mask = capacityOf(ring) - 1;
  for (let i = 0; i < size; i += 1) {
    if ((ring[2 * ((first + i) & mask) + 1] ?? 0) >= tooOld) return false;
  }
  return floor < tooOld;
}

/**
 * Expired entries are dropped first, and a full window drops its oldest entry. The floor rises to whatever
 * is dropped, so that it stays refused however late a request is judged and wherever the clock is set. An
 * entry after `latest` was signed under a clock that has been set back since, and must not refuse current
 * requests.
 */
function dropOld(
  window: NonceWindow,
  { tooOld, latest, full }: { tooOld: number; latest: number; full: number },
): void {
  const mask = capacityOf(window.ring) - 1;
  while (window.size > 0) {
    const signedAt = window.ring[2 * window.first + 1] ?? 0;
    if (signedAt >= tooOld && window.size < full) return;
    window.first = (window.first + 1) & mask;
    window.size -= 1;
    if (signedAt <= latest) window.floor = Math.max(window.floor, signedAt);
  }
}

function append(window: NonceWindow, fingerprint: number, signedAt: number): void {
  if (window.size === capacityOf(window.ring)) grow(window);
  const at = 2 * ((window.first + window.size) & (capacityOf(window.ring) - 1));
  window.ring[at] = fingerprint;
  window.ring[at + 1] = signedAt;
  window.size += 1;
}

function grow(window: NonceWindow): void {
  const { first, size, ring } = window;
  const larger = emptyRing(2 * size);
  for (let i = 0; i < ring.length; i += 1) {
    larger[i] = ring[(2 * first + i) % ring.length] ?? 0;
  }
  window.ring = larger;
  window.first = 0;
}

/**
 * One array for both numbers of an entry: most nodes need only a few, and a typed array costs more than
 * that.
 */
function emptyRing(capacity: number): number[] {
  return new Array<number>(2 * capacity).fill(0);
}

function capacityOf(ring: readonly number[]): number {
  return ring.length / 2;
}
