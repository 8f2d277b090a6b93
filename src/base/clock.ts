/**
 * The time of the service: the wall clock at the start, advanced by the monotonic clock. Small corrections of the wall
 * clock are followed at once. A step is reported at once but followed only after it has persisted for a while, so that
 * a clock that is wrong for a few seconds causes no wrong refusals, removals or liveness.
 */
import type { SystemTime } from './runtime.ts';

/** One shared number: the offset from the monotonic time to the time of the service. */
export type ClockAnchor = Float64Array;

export interface ClockListener {
  /** The wall clock was set by this many milliseconds. */
  stepped(byMs: number): void;
  /** The service now follows a wall clock that was set by this many milliseconds. */
  followed(byMs: number): void;
}

/** Clock synchronization does not adjust a clock by this much within a second. */
const STEP_MS = 1000;
/** Differences up to this are the resolution of the two clocks. */
const GRAIN_MS = 10;
/** How long a step must persist before it is followed. */
const LASTING_MS = 10_000;

/** The time of the service at a reading of the monotonic clock; all threads follow the one anchor. */
export function anchoredTime(anchor: ClockAnchor): (elapsed: number) => number {
  return (elapsed) => Math.floor(elapsed + (anchor[0] ?? 0));
}

export type Clock = ReturnType<typeof createClock>;

export function createClock(time: SystemTime, listener: ClockListener) {
  const anchor = new Float64Array(new SharedArrayBuffer(Float64Array.BYTES_PER_ELEMENT));
  anchor[0] = differenceOf(time);
  /** A step that is not followed yet, and the monotonic time when it was first seen. */
  let pending: { readonly skew: number; readonly since: number } | null = null;

  function skew(): number {
    return differenceOf(time) - (anchor[0] ?? 0);
  }

  function follow(byMs: number): void {
    anchor[0] = (anchor[0] ?? 0) + byMs;
    pending = null;
  }

  return {
    anchor,
    /** How far the wall clock is ahead of the service, in milliseconds. */
    skew,
    /** The time of the service at a reading of the monotonic clock. */
    timeAt: anchoredTime(anchor),
    /** Compares wall clock and service; call it about once a second. */
    check(): void {
      const current = skew();
      const step = current - (pending?.skew ?? 0);
      if (Math.abs(step) > STEP_MS) {
        listener.stepped(step);
        pending = { skew: current, since: time.monotonic() };
      }
      if (Math.abs(current) <= STEP_MS) {
        if (Math.abs(current) > GRAIN_MS) follow(current);
        else pending = null;
      } else if (pending !== null && time.monotonic() - pending.since >= LASTING_MS) {
        follow(current);
        listener.followed(current);
      }
    },
  };
}

/** The smallest of several readings: a thread suspended between the two reads gets the second one too late. */
function differenceOf({ wall, monotonic }: SystemTime): number {
  let found = Number.POSITIVE_INFINITY;
  let quickest = Number.POSITIVE_INFINITY;
  for (let i = 0; i < 3; i += 1) {
    const before = monotonic();
    const read = wall();
    const took = monotonic() - before;
    if (took >= quickest) continue;
    quickest = took;
    found = read - before - took / 2;
  }
  return found;
}
