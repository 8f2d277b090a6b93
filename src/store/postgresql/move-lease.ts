/** The right to write to a database, for a process that moves a state out of it or into it. */
import type { StoreAddress } from './address.ts';
import { acquireLease, type Lease, type LeaseHolder } from './lease.ts';
import type { LeaseClock } from './lease-clock.ts';
import { connectToLease, type LeaseTableOptions } from './lease-table.ts';

export interface MoverOptions extends LeaseTableOptions {
  readonly address: StoreAddress;
  readonly holder: LeaseHolder;
  readonly clock: LeaseClock;
}

/** Throws one clear sentence while another process has the right. */
export function acquireMoveLease(options: MoverOptions): Promise<Lease> {
  return acquireLease({
    ...options,
    candidate: null,
    ttl: options.leaseMs,
    connect: () => connectToLease(options.address, options),
    confirmed: () => undefined,
    stopRequested: () => undefined,
    // Every transaction of a move holds the lease, and fails without it.
    lost: () => undefined,
  });
}
