/**
 * Replay protection for heartbeats [core-2-3]: a bounded window of nonces per node key, similar to IPsec's anti-replay
 * window (RFC 4303, 3.4.3). It exists only in memory; after a restart, a stored floor replaces it.
 */
import { detached } from '../../base/detached.ts';

/** A nonce is kept this much longer than its timestamp is acceptable. */
const MARGIN_MS = 60_000;

export type WindowVerdict = 'fresh' | 'nonce_replay' | 'stale_timestamp';

/** The number of windows that one call to `forgetIdle` examines, which takes about half a millisecond. */
const LOOKED_AT = 5000;

/**
 * The last accepted nonces of one node, oldest first, in a ring buffer of plain numbers. An object per heartbeat that
 * lives for minutes would be the most expensive kind of garbage.
 */
interface NonceWindow {
  /** Requests signed at or before this instant are refused. */
  floor: number;
  /** The first entry and the number of entries in the ring; each entry is a fingerprint and its signing time. */
  first: number;
  size: number;
  ring: number[];
}

/** The capacities of a full window and of a new window's ring; both are powers of two. */
export interface WindowSizes {
  readonly full: number;
  readonly first: number;
}

const SIZES: WindowSizes = { full: 256, first: 4 };

/**
 * A node has no window before its first claim. Until then, `floorOf` provides its floor, which also becomes the initial
 * floor of its window: everything signed up to that instant belongs to an earlier run.
 */
export function createNonceWindows(
  toleranceMs: number,
  floorOf: (nodeKey: string) => number,
  sizes = SIZES,
) {
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
    /** Checks whether a request signed at `signedAt` with this nonce may be accepted, without claiming the nonce. */
    check(nodeKey: string, nonce: string, signedAt: number): WindowVerdict {
      const known = windows.get(nodeKey);
      if (known !== undefined && holds(known, fingerprintOf(nonce))) return 'nonce_replay';
      return signedAt <= (known?.floor ?? floorOf(nodeKey)) ? 'stale_timestamp' : 'fresh';
    },
    claim(nodeKey: string, nonce: string, signedAt: number, now: number) {
      const window = windowOf(nodeKey);
      dropOld(window, { tooOld: tooOldAt(now), latest: now + toleranceMs, full: sizes.full });
      append(window, fingerprintOf(nonce), signedAt);
    },
    /** Call when the clock was set back to `now`: later floors must not refuse current requests. */
    clockSetBack(now: number) {
      // As after a crash, requests accepted earlier are then refused because they were signed before `now`.
      for (const window of windows.values()) {
        if (window.floor > now + toleranceMs) window.floor = now;
      }
    },
    /** Examines the next few windows and drops those that contain only expired entries. */
    forgetIdle(now: number) {
      for (let i = 0; i < LOOKED_AT; i += 1) {
        const next = lookedAt.next();
        if (next.done === true) {
          lookedAt = windows.entries();
          return;
        }
        // Safe, because `floorOf` never returns less than the newest timestamp that the node signed.
        if (isIdle(next.value[1], tooOldAt(now))) windows.delete(next.value[0]);
      }
    },
    /** The number of nodes that have a window. */
    count: () => windows.size,
  };
}

/**
 * A 53-bit hash of a nonce. If two nonces of one node collide, a genuine request is refused, and the node sends it
 * again with another nonce. A maliciously chosen nonce cannot make requests of other nodes fail.
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

/** Whether everything that the window refuses would also be refused because of its age. */
function isIdle({ floor, first, size, ring }: NonceWindow, tooOld: number): boolean {
  const mask = capacityOf(ring) - 1;
  for (let i = 0; i < size; i += 1) {
    if ((ring[2 * ((first + i) & mask) + 1] ?? 0) >= tooOld) return false;
  }
  return floor < tooOld;
}

/**
 * Drops expired entries, and the oldest entry of a full window. The floor rises to the signing times of the dropped
 * entries, so that they remain refused no matter how late a request is checked or how the clock is set. An entry later
 * than `latest` was signed under a clock that has since been set back, and must not cause current requests to be
 * refused.
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
 * A single plain array holds both numbers of each entry: most nodes need only a few entries, and a typed array would
 * cost more than that.
 */
function emptyRing(capacity: number): number[] {
  return new Array<number>(2 * capacity).fill(0);
}

function capacityOf(ring: readonly number[]): number {
  return ring.length / 2;
}
