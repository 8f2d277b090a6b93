import { systemRuntime } from '../../src/runtime.ts';

/** A clock set by hand. It starts at the real time, to the millisecond, and moves only when told. */
export interface TestClock {
  /** What every thread reads: one number, milliseconds since the epoch; null for the system's clock. */
  readonly shared: Float64Array | null;
  now(): number;
  advance(milliseconds: number): void;
}

export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;

export function testClock(start = systemRuntime.now()): TestClock {
  const shared = new Float64Array(new SharedArrayBuffer(Float64Array.BYTES_PER_ELEMENT));
  shared[0] = start;
  const now = () => shared[0] ?? 0;
  return {
    shared,
    now,
    advance(milliseconds) {
      shared[0] = now() + milliseconds;
    },
  };
}
