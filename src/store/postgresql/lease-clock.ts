import { type After, type Runtime, systemAfter } from '../../base/runtime.ts';

/** The clock that leases depend on, separate from that of the service, which tests may set. */
export interface LeaseClock {
  /** Monotonic milliseconds. */
  elapsed(): number;
  readonly after: After;
}

export function leaseClock({ elapsed }: Pick<Runtime, 'elapsed'>): LeaseClock {
  return { elapsed, after: systemAfter };
}

export function pauseOn(clock: LeaseClock, milliseconds: number): Promise<void> {
  return new Promise((resolve) => void clock.after(milliseconds, resolve));
}
