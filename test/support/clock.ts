import { systemRuntime } from '../../src/runtime.ts';

/** A clock set by hand. It starts at the real time, to the millisecond, and moves only when told. */
export interface TestClock {
  now(): number;
  advance(milliseconds: number): void;
}

export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;

export function testClock(start = systemRuntime.now()): TestClock {
  let at = start;
  return {
    now: () => at,
    advance(milliseconds) {
      at += milliseconds;
    },
  };
}
