/** Opens the store that the settings name: in the data folder, or in a database. */
import { hostname } from 'node:os';
import type { Runtime } from '../runtime.ts';
import { DATABASE as LMDB, openLmdbStore } from './lmdb/store.ts';
import type { NetworkIdentity } from './network-identity.ts';
import type { StoreAddress } from './postgresql/address.ts';
import type { LeaseClock } from './postgresql/lease.ts';
import { openPostgresqlStore, DATABASE as POSTGRESQL } from './postgresql/store.ts';
import type { Store } from './store.ts';

/** A database that holds the state in place of the data folder. */
export interface DatabaseSetting {
  /** A function, so that no password is printed by mistake. */
  readonly address: () => StoreAddress;
  /** How long the right to write lasts without a renewal, in milliseconds. */
  readonly leaseMs: number;
}

export interface StoreOptions {
  readonly dataDir: string;
  /** Null for the store in the data folder. */
  readonly database: DatabaseSetting | null;
  readonly network: NetworkIdentity;
  /** Of this start of the service. */
  readonly instanceId: string;
  /** Its time is that of the system. */
  readonly runtime: Runtime;
  /** Called once, when another process may write. */
  lost(problem: string): void;
}

export interface OpenedStore {
  readonly store: Store;
  readonly database: { readonly backend: string; readonly schemaVersion: number };
  /** Sentences about the database that an operator should read; none for the data folder. */
  readonly notes: readonly string[];
}

/** Throws one clear sentence when the store cannot be used. */
export async function openStore(options: StoreOptions): Promise<OpenedStore> {
  const { dataDir, database, network } = options;
  if (database === null) {
    return { store: openLmdbStore(dataDir, network), database: LMDB, notes: [] };
  }
  const store = await openPostgresqlStore({
    address: database.address(),
    network,
    dataDir,
    holder: { id: options.instanceId, name: `pid ${process.pid} on ${hostname()}` },
    clock: leaseClock(options.runtime),
    leaseMs: database.leaseMs,
    lost: options.lost,
  });
  const { server, meaning } = store.durability;
  return { store, database: POSTGRESQL, notes: [`The state is in PostgreSQL ${server}`, meaning] };
}

/** For tools that do not serve: holds the state, so that nobody else does. */
export function openDatabase(address: StoreAddress, runtime: Runtime): Promise<Store> {
  return openPostgresqlStore({
    address,
    network: null,
    dataDir: '',
    holder: { id: runtime.uuid(), name: `pid ${process.pid} on ${hostname()}` },
    clock: leaseClock(runtime),
    leaseMs: TOOL_LEASE_MS,
    lost: () => undefined,
  });
}

/** A tool that is killed keeps others out for this long. */
const TOOL_LEASE_MS = 5000;

function leaseClock({ elapsed }: Runtime): LeaseClock {
  return {
    elapsed,
    after(milliseconds, work) {
      const timer = setTimeout(work, milliseconds);
      return () => clearTimeout(timer);
    },
  };
}
