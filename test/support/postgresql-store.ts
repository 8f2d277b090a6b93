/** How tests open a store in PostgreSQL. */
import { hostname } from 'node:os';
import { systemRuntime } from '../../src/runtime.ts';
import { parseStoreAddress } from '../../src/store/postgresql/address.ts';
import type { LeaseClock } from '../../src/store/postgresql/lease.ts';
import type { PostgresqlOptions } from '../../src/store/postgresql/store.ts';

/** The time of the machine: the database counts by it too. */
const CLOCK: LeaseClock = {
  elapsed: systemRuntime.elapsed,
  after(milliseconds, work) {
    const timer = setTimeout(work, milliseconds);
    return () => clearTimeout(timer);
  },
};

export function storeOptions(
  url: string,
  given: Partial<PostgresqlOptions> = {},
): PostgresqlOptions {
  return {
    address: parseStoreAddress(url, {}),
    network: null,
    dataDir: '',
    holder: { id: systemRuntime.uuid(), name: `pid ${process.pid} on ${hostname()}` },
    clock: CLOCK,
    leaseMs: 5000,
    lost: () => undefined,
    ...given,
  };
}
