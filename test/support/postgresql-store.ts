/** How tests open a store in PostgreSQL. */
import { hostname } from 'node:os';
import { systemRuntime } from '../../src/base/runtime.ts';
import { parseStoreAddress } from '../../src/store/postgresql/address.ts';
import { leaseClock } from '../../src/store/postgresql/clocks.ts';
import { migrateDatabase } from '../../src/store/postgresql/status.ts';
import type { PostgresqlOptions } from '../../src/store/postgresql/store.ts';
import type { Databases } from './postgresql.ts';

/** The clock of the machine, which the database uses too. */
export const SYSTEM_CLOCK = leaseClock(systemRuntime);

export function storeOptions(
  url: string,
  given: Partial<PostgresqlOptions> = {},
): PostgresqlOptions {
  return {
    address: parseStoreAddress(url, {}),
    network: null,
    dataDir: '',
    holder: { id: systemRuntime.uuid(), name: `pid ${process.pid} on ${hostname()}` },
    standby: null,
    clock: SYSTEM_CLOCK,
    now: systemRuntime.now,
    leaseMs: 5000,
    confirmed: () => undefined,
    clockCompared: () => undefined,
    delayed: () => undefined,
    lost: () => undefined,
    ...given,
  };
}

/** Creates a database with the tables of this program; returns its address. `definition` contains SQL options. */
export async function migratedDatabase(
  cluster: Pick<Databases, 'createDatabase'>,
  definition?: string,
): Promise<string> {
  const url = await cluster.createDatabase(definition);
  await migrateDatabase(parseStoreAddress(url, {}));
  return url;
}
