/** Opens the configured store: in the data folder or in a database. */
import { hostname } from 'node:os';
import type { Runtime } from '../base/runtime.ts';
import { DATABASE as LMDB } from './lmdb/ownership.ts';
import { openLmdbStore } from './lmdb/store.ts';
import type { NetworkIdentity } from './network-identity.ts';
import type { PgEnvironment, StoreAddress } from './postgresql/address.ts';
import { leaseClock } from './postgresql/clocks.ts';
import type { Standby } from './postgresql/lease.ts';
import { DATABASE as POSTGRESQL } from './postgresql/schema.ts';
import { openStandbyReader } from './postgresql/standby-reader.ts';
import { type OwnLease, openPostgresqlStore, type PostgresqlOptions } from './postgresql/store.ts';
import type { StandbyReader, Store } from './store.ts';

export type { OwnLease, Standby };

/** A database that holds the state instead of the data folder. */
export interface DatabaseSetting {
  /** A function, so that no password is printed by mistake. */
  readonly address: () => StoreAddress;
  /** The source of the address; a function for the same reason. */
  readonly named: () => NamedDatabase;
  /** How long the lease lasts without renewal, in milliseconds. */
  readonly leaseMs: number;
}

/** The name of a database, which can be sent to another process. */
export interface NamedDatabase {
  readonly url: string;
  /** Environment variables with further connection settings. */
  readonly environment: PgEnvironment;
}

export interface SharedStoreOptions
  extends Pick<
    PostgresqlOptions,
    'dataDir' | 'standby' | 'confirmed' | 'clockCompared' | 'delayed' | 'lost'
  > {
  readonly database: DatabaseSetting;
  readonly network: NetworkIdentity;
  /** Identifies this start of the service. */
  readonly instanceId: string;
  /** Its time is the system time. */
  readonly runtime: Runtime;
}

export interface OpenedStore {
  readonly store: Store;
  /** Null if the state cannot pass to another process while this one lives. */
  readonly lease: OwnLease | null;
  /** Sentences about the database for the operator; empty for the data folder. */
  readonly notes: readonly string[];
}

/** The kind of the configured store. */
export function databaseOf(database: DatabaseSetting | null) {
  return database === null ? LMDB : POSTGRESQL;
}

/** Opens the state in the data folder; throws a one-sentence error if it cannot be used. */
export function openOwnStore(dataDir: string, network: NetworkIdentity): OpenedStore {
  return { store: openLmdbStore(dataDir, network), lease: null, notes: [] };
}

/**
 * Throws a one-sentence error if the database cannot be used. Resolves when this process may write to it, which may be
 * only after others have stopped.
 */
export async function openSharedStore(options: SharedStoreOptions): Promise<OpenedStore> {
  const { database, instanceId, runtime } = options;
  const store = await openPostgresqlStore({
    ...options,
    address: database.address(),
    holder: { id: instanceId, name: processName() },
    clock: leaseClock(runtime),
    now: runtime.now,
    leaseMs: database.leaseMs,
  });
  const { lease, durability } = store;
  const { server, meaning } = durability;
  return { store, lease, notes: [`The state is in PostgreSQL ${server}`, meaning] };
}

/** Reads the state while another instance writes it. */
export function standbyReader(database: DatabaseSetting, network: NetworkIdentity): StandbyReader {
  return openStandbyReader({
    address: database.address(),
    network,
    leaseMs: database.leaseMs,
  });
}

/** Options with which a move gets exclusive use of a database. */
export function moverOptions(runtime: Runtime) {
  return {
    holder: { id: runtime.uuid(), name: `the move by ${processName()}` },
    clock: leaseClock(runtime),
    now: runtime.now,
    clockCompared: () => undefined,
    leaseMs: MOVER_LEASE_MS,
  };
}

/** A killed move blocks others for this long. */
const MOVER_LEASE_MS = 5000;

/** The name of this process, for other processes. */
export function processName(): string {
  return `pid ${process.pid} on ${hostname()}`;
}
