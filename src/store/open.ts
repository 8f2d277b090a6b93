/** Opens the store that the settings name: in the data folder, or in a database. */
import { hostname } from 'node:os';
import type { Runtime } from '../base/runtime.ts';
import { DATABASE as LMDB } from './lmdb/ownership.ts';
import { openLmdbStore } from './lmdb/store.ts';
import type { NetworkIdentity } from './network-identity.ts';
import type { PgEnvironment, StoreAddress } from './postgresql/address.ts';
import { openPostgresqlFollower } from './postgresql/follower.ts';
import type { Candidate } from './postgresql/lease.ts';
import { leaseClock } from './postgresql/lease-clock.ts';
import { DATABASE as POSTGRESQL } from './postgresql/schema.ts';
import { openPostgresqlStore, type Tenure } from './postgresql/store.ts';
import type { StateFollower, Store } from './store.ts';

export type { Candidate, Tenure };

/** A database that holds the state in place of the data folder. */
export interface DatabaseSetting {
  /** A function, so that no password is printed by mistake. */
  readonly address: () => StoreAddress;
  /** What the address was read from; a function for the same reason. */
  readonly named: () => NamedDatabase;
  /** How long the right to write lasts without a renewal, in milliseconds. */
  readonly leaseMs: number;
}

/** The name of a database, which can be sent to another process. */
export interface NamedDatabase {
  readonly url: string;
  /** Variables that say more about it. */
  readonly environment: PgEnvironment;
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
  /** How this instance takes its turn, where several can serve one state. */
  readonly candidate: Candidate;
  /** A database has said after this many milliseconds whether this process is still the one that writes. */
  confirmed(milliseconds: number): void;
  /** Called whenever a database was asked who may write: this many milliseconds is this machine ahead of it, or behind. */
  clockCompared(aheadMs: number): void;
  /** Called once, when the state is to be moved elsewhere, and this process to stop. */
  stopRequested(): void;
  /** Called once, when another process may write. */
  lost(problem: string): void;
}

export interface OpenedStore {
  readonly store: Store;
  /** Null where the state cannot pass to another process while this one lives. */
  readonly tenure: Tenure | null;
  /** Sentences about the database that an operator should read; none for the data folder. */
  readonly notes: readonly string[];
}

/** The kind of store that the settings name. */
export function databaseOf(database: DatabaseSetting | null) {
  return database === null ? LMDB : POSTGRESQL;
}

/**
 * Throws one clear sentence when the store cannot be used. Resolves when this process may write to it, which in a
 * database may be after others have stopped.
 */
export async function openStore(options: StoreOptions): Promise<OpenedStore> {
  const { dataDir, database, network } = options;
  if (database === null) {
    return { store: openLmdbStore(dataDir, network), tenure: null, notes: [] };
  }
  const store = await openPostgresqlStore({
    address: database.address(),
    network,
    dataDir,
    holder: { id: options.instanceId, name: processName() },
    candidate: options.candidate,
    clock: leaseClock(options.runtime),
    now: options.runtime.now,
    leaseMs: database.leaseMs,
    confirmed: options.confirmed,
    clockCompared: options.clockCompared,
    stopRequested: options.stopRequested,
    lost: options.lost,
  });
  const { tenure, durability } = store;
  const { server, meaning } = durability;
  return { store, tenure, notes: [`The state is in PostgreSQL ${server}`, meaning] };
}

/** Reads the state while another instance writes it. */
export function followDatabase(database: DatabaseSetting, network: NetworkIdentity): StateFollower {
  return openPostgresqlFollower({
    address: database.address(),
    network,
    name: processName(),
    leaseMs: database.leaseMs,
  });
}

/** How a move has a database for itself. */
export function moverOptions(runtime: Runtime) {
  return {
    holder: { id: runtime.uuid(), name: `the move by ${processName()}` },
    clock: leaseClock(runtime),
    now: runtime.now,
    clockCompared: () => undefined,
    leaseMs: MOVER_LEASE_MS,
  };
}

/** A move that is killed keeps others out for this long. */
const MOVER_LEASE_MS = 5000;

/** What other processes call this one. */
export function processName(): string {
  return `pid ${process.pid} on ${hostname()}`;
}
