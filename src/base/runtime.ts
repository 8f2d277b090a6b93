import { randomFillSync, randomUUID } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';

/** The only source of time and randomness. Tests replace the clock. */
export interface Runtime {
  /** The time of the service, milliseconds since the epoch. */
  now(): number;
  /** Monotonic milliseconds, for durations only. */
  elapsed(): number;
  /** Resolves after this many milliseconds. */
  pause(milliseconds: number): Promise<void>;
  uuid(): string;
  randomBytes(length: number): Buffer;
}

/** Reading a clock costs a tenth of serving a cached document, so an edge derives one time from the other. */
export interface EdgeRuntime extends Runtime {
  /** The value of `now` when `elapsed` has this value. */
  timeAt(elapsed: number): number;
}

/** `runtime` with these clocks instead of its own. */
export function withClocks(
  runtime: Runtime,
  { monotonic }: SystemTime,
  timeAt: (elapsed: number) => number,
): EdgeRuntime {
  return { ...runtime, now: () => timeAt(monotonic()), elapsed: monotonic, timeAt };
}

/** The system clocks, in milliseconds. */
export interface SystemTime {
  /** Since the epoch; it may be set at any time. */
  wall(): number;
  /** Never goes back, and is the same on all threads. */
  monotonic(): number;
}

/** `performance.now` starts at zero in each thread. */
const threadBegan = Number(process.hrtime.bigint()) / 1e6 - performance.now();

const systemTime: SystemTime = {
  wall: Date.now,
  monotonic: () => threadBegan + performance.now(),
};

/** Two shared numbers that a test sets: wall clock and monotonic clock. */
export type ManualTime = Float64Array;

/** The manually set clocks if any, otherwise the system clocks. */
export function timeOf(manual: ManualTime | null): SystemTime {
  if (manual === null) return systemTime;
  return { wall: () => manual[0] ?? 0, monotonic: () => manual[1] ?? 0 };
}

/** Calls back once after this many milliseconds; returns a function that cancels this. */
export type After = (milliseconds: number, work: () => unknown) => () => void;

export const systemAfter: After = (milliseconds, work) => {
  const timer = setTimeout(() => void work(), milliseconds);
  return () => clearTimeout(timer);
};

const POOLED_BYTES = 4096;

/** Filling a pool from the system's generator costs as much as getting a few bytes. */
function pooledRandomBytes(): (length: number) => Buffer {
  const pool = Buffer.alloc(POOLED_BYTES);
  let used = POOLED_BYTES;

  return (length) => {
    if (length > POOLED_BYTES) return randomFillSync(Buffer.alloc(length));
    if (used + length > POOLED_BYTES) {
      randomFillSync(pool);
      used = 0;
    }
    const bytes = Buffer.alloc(length);
    pool.copy(bytes, 0, used, used + length);
    // The bytes may become secrets, so the pool must not keep a copy.
    pool.fill(0, used, used + length);
    used += length;
    return bytes;
  };
}

export const systemRuntime: Runtime = {
  now: Date.now,
  elapsed: systemTime.monotonic,
  pause: (milliseconds) => pause(milliseconds),
  uuid: () => randomUUID(),
  randomBytes: pooledRandomBytes(),
};
