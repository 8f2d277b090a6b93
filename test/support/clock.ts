import { type ManualTime, systemRuntime } from '../../src/base/runtime.ts';

/**
 * Manually set clocks. The wall clock starts at the real time, to the millisecond; both move only on
 * request.
 */
export interface TestClock {
  /** What every thread reads: wall and monotonic milliseconds; null for the system's clocks. */
  readonly shared: ManualTime | null;
  /** The wall clock. */
  now(): number;
  /** Advances both clocks. */
  advance(milliseconds: number): void;
  /** Sets the wall clock without advancing time. */
  step(milliseconds: number): void;
}

export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;

/** An offset that reveals code that uses one clock instead of the other. */
const MONOTONIC_START = 5 * HOUR;

export function testClock(start = systemRuntime.now()): TestClock {
  const shared = new Float64Array(new SharedArrayBuffer(2 * Float64Array.BYTES_PER_ELEMENT));
  shared.set([start, MONOTONIC_START]);
  const now = () => shared[0] ?? 0;
  function step(milliseconds: number): void {
    shared[0] = now() + milliseconds;
  }
  return {
    shared,
    now,
    step,
    advance(milliseconds) {
      step(milliseconds);
      shared[1] = (shared[1] ?? 0) + milliseconds;
    },
  };
}

interface Clocked {
  readonly clock: TestClock;
  checkClock(): Promise<void>;
  flush(): Promise<void>;
}

/** A second passes for the service. */
export async function tick(na: Clocked): Promise<void> {
  na.clock.advance(SECOND);
  await na.checkClock();
  await na.flush();
}

/** Sets the wall clock, and waits until the service follows it. */
export async function setClock(na: Clocked, byMs: number): Promise<void> {
  na.clock.step(byMs);
  for (let i = 0; i < 12; i += 1) await tick(na);
}

function moveNothing(): never {
  throw new Error('Nobody moves the real time');
}

/** The wall clock, for tests that involve another process. */
export const REAL_TIME: TestClock = {
  shared: null,
  now: systemRuntime.now,
  advance: moveNothing,
  step: moveNothing,
};
