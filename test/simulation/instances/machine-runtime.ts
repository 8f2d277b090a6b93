/** Time and randomness of a process. Each machine has its own clocks. */
import type { Runtime } from '../../../src/base/runtime.ts';
import type { Random } from '../../fuzz/random.ts';
import type { Machine } from './clockwork.ts';

/** When each history begins. */
export const BEGAN = Date.UTC(2026, 2, 1);

export function machineRuntime(machine: Machine, chance: Random): Runtime {
  return {
    now: () => BEGAN + Math.floor(machine.clockwork.now) + machine.ahead,
    elapsed: machine.elapsed,
    pause: (milliseconds) => new Promise((resolve) => void machine.after(milliseconds, resolve)),
    ...randomness(chance),
  };
}

export function randomness(chance: Random): Pick<Runtime, 'uuid' | 'randomBytes'> {
  const randomBytes = (length: number) =>
    Buffer.from(Array.from({ length }, () => Math.floor(chance.between(0, 256))));
  return {
    randomBytes,
    uuid: () =>
      randomBytes(16)
        .toString('hex')
        .replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12})$/, '$1-$2-4$3-8$4-$5'),
  };
}
