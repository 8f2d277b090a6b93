/** Time and randomness of a simulation: everything follows from its seed and its steps. */
import { createHash } from 'node:crypto';
import { createClock } from '../../src/base/clock.ts';
import type { Runtime } from '../../src/base/runtime.ts';

export interface SimulatedRuntime extends Runtime {
  /** Advances time. */
  advance(milliseconds: number): void;
  /** Sets the wall clock. */
  setWallClock(milliseconds: number): void;
  /** A new process starts with the current wall clock, and calls back whenever it follows a clock step. */
  restart(followed: (byMs: number) => void): void;
}

const START = Date.UTC(2026, 2, 1);
const SECOND = 1000;
/** How long a step of the wall clock must last before it is followed. */
const LASTING = 11 * SECOND;

export function simulatedRuntime(): SimulatedRuntime {
  let wall = START;
  let elapsed = 0;
  let drawn = 0;
  let clock = newClock(() => undefined);

  function newClock(followed: (byMs: number) => void) {
    const time = { wall: () => wall, monotonic: () => elapsed };
    return createClock(time, { stepped: () => undefined, followed });
  }

  function pass(milliseconds: number): void {
    wall += milliseconds;
    elapsed += milliseconds;
    clock.check();
  }

  function randomBytes(length: number): Buffer {
    drawn += 1;
    return createHash('shake256', { outputLength: length }).update(`${drawn}`).digest();
  }

  return {
    now: () => clock.timeAt(elapsed),
    elapsed: () => elapsed,
    pause(milliseconds) {
      pass(milliseconds);
      return Promise.resolve();
    },
    uuid() {
      const hex = randomBytes(16).toString('hex');
      return hex.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12})$/, '$1-$2-4$3-8$4-$5');
    },
    randomBytes,
    advance(milliseconds) {
      // The service compares the clocks every second; here that is simulated only where it matters.
      const first = Math.min(milliseconds, SECOND);
      const second = Math.min(milliseconds - first, LASTING);
      for (const part of [first, second, milliseconds - first - second]) if (part > 0) pass(part);
    },
    setWallClock(milliseconds) {
      wall += milliseconds;
      clock.check();
    },
    restart(followed) {
      clock = newClock(followed);
    },
  };
}
