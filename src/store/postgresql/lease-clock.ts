import type { Runtime } from '../../base/runtime.ts';

/** The clock that leases depend on, separate from that of the service, which tests may set. */
export interface LeaseClock {
  /** Monotonic milliseconds. */
  elapsed(): number;
  /** Calls back once after this many milliseconds; returns a function that cancels this. */
  after(milliseconds: number, work: () => void): () => void;
}

export function leaseClock({ elapsed }: Pick<Runtime, 'elapsed'>): LeaseClock {
  return {
    elapsed,
    after(milliseconds, work) {
      const timer = setTimeout(work, milliseconds);
      return () => clearTimeout(timer);
    },
  };
}

export function pauseOn(clock: LeaseClock, milliseconds: number): Promise<void> {
  return new Promise((resolve) => void clock.after(milliseconds, resolve));
}
