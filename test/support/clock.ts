import { type After, type ManualTime, systemAfter, systemRuntime } from '../../src/base/runtime.ts';

/**
 * Manually set clocks. The wall clock starts at the real time, to the millisecond; both move only on
 * request. Periodic work runs when they are advanced, and at no other time.
 */
export interface TestClock {
  /** What every thread reads: wall and monotonic milliseconds; null for the system's clocks. */
  readonly shared: ManualTime | null;
  /** The wall clock. */
  now(): number;
  /** Advances both clocks, and begins the periodic work that is due, in the order in which it was scheduled. */
  advance(milliseconds: number): void;
  /** Schedules work. */
  readonly after: After;
  /** Resolves when all work that has begun so far has ended; requests of tests wait for this. */
  idle(): Promise<void>;
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
  const scheduled = new Set<{ readonly at: number; readonly work: () => unknown }>();
  let running = Promise.resolve();
  const now = () => shared[0] ?? 0;
  const elapsed = () => shared[1] ?? 0;
  function step(milliseconds: number): void {
    shared[0] = now() + milliseconds;
  }
  return {
    shared,
    now,
    step,
    advance(milliseconds) {
      step(milliseconds);
      shared[1] = elapsed() + milliseconds;
      for (const next of scheduled) {
        if (next.at > elapsed()) continue;
        // What is canceled while others run must not run.
        running = running.then(async () => {
          if (scheduled.delete(next)) await next.work();
        });
      }
    },
    after(milliseconds, work) {
      const entry = { at: elapsed() + milliseconds, work };
      scheduled.add(entry);
      return () => scheduled.delete(entry);
    },
    idle: () => running,
  };
}

interface Clocked {
  readonly clock: TestClock;
}

/** A second passes for the service. */
export async function tick({ clock }: Clocked): Promise<void> {
  clock.advance(SECOND);
  await clock.idle();
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
  after: systemAfter,
  idle: () => Promise.resolve(),
  step: moveNothing,
};
