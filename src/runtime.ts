import { randomBytes, randomUUID } from 'node:crypto';
import { performance } from 'node:perf_hooks';

/** The only source of time and randomness. Tests replace the clock; nothing else reads another one. */
export interface Runtime {
  /** Wall clock, milliseconds since the epoch. */
  now(): number;
  /** Monotonic milliseconds, for durations only. */
  elapsed(): number;
  uuid(): string;
  randomBytes(length: number): Buffer;
}

export const systemRuntime: Runtime = {
  now: Date.now,
  elapsed: () => performance.now(),
  uuid: () => randomUUID(),
  randomBytes: (length) => randomBytes(length),
};
