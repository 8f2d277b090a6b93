/** Where the states of a history are stored: in folders, or in databases of one server. */
import { mkdirSync } from 'node:fs';
import { openLmdbTarget } from '../../src/store/lmdb/receiver.ts';
import { openLmdbSource, readAuditEntries } from '../../src/store/lmdb/source.ts';
import { openLmdbStore } from '../../src/store/lmdb/store.ts';
import { parseStoreAddress } from '../../src/store/postgresql/address.ts';
import { openPostgresqlTarget } from '../../src/store/postgresql/receiver.ts';
import { openPostgresqlSource, readAuditLog } from '../../src/store/postgresql/source.ts';
import { openPostgresqlStore } from '../../src/store/postgresql/store.ts';
import type { AuditEntry, Store } from '../../src/store/store.ts';
import type { StateSource, StateTarget } from '../../src/store/stream/ports.ts';
import type { TestCluster } from '../support/postgresql.ts';
import { migratedDatabase, storeOptions } from '../support/postgresql-store.ts';
import { IDENTITY } from './lived.ts';

/** A place for one state, initially empty. */
export interface StatePlace {
  open(): Promise<Store>;
  source(): Promise<StateSource>;
  target(): Promise<StateTarget>;
  auditLog(): Iterable<AuditEntry> | AsyncIterable<AuditEntry>;
  /** Removes what is outside the folder. */
  remove(): Promise<void>;
}

/** Creates a place for a network whose folder does not exist yet. */
export type NewPlace = (dataDir: string) => Promise<StatePlace>;

export interface Route {
  readonly name: string;
  /** Where the lost state was. */
  readonly from: NewPlace;
  /** Where its backup is restored. */
  readonly to: NewPlace;
}

const inFolder: NewPlace = async (dataDir) => ({
  open: async () => openLmdbStore(dataDir, IDENTITY),
  source: () => openLmdbSource(dataDir),
  target: async () => openLmdbTarget(dataDir),
  auditLog: () => readAuditEntries(dataDir),
  remove: async () => undefined,
});

export const WITHIN_FOLDERS: Route = { name: 'a folder', from: inFolder, to: inFolder };

/** The routes that involve a database. */
export async function routesWith(cluster: TestCluster): Promise<readonly Route[]> {
  const inDatabase = await databasesOf(cluster);
  return [
    { name: 'a database, into another one', from: inDatabase, to: inDatabase },
    { name: 'a database, into a folder', from: inDatabase, to: inFolder },
    { name: 'a folder, into a database', from: inFolder, to: inDatabase },
  ];
}

/** Databases are copied from a template with the tables, which is faster than creating them. */
async function databasesOf(cluster: TestCluster): Promise<NewPlace> {
  const template = nameOf(await migratedDatabase(cluster));
  return async (dataDir) => {
    mkdirSync(dataDir);
    const name = nameOf(await cluster.createDatabase(`template ${template}`));
    // The socket requires no password, and checking one takes most of the time of a connection.
    const url = `postgresql://postgres@/${name}?host=${cluster.socketFolder}&port=${cluster.port}`;
    const address = parseStoreAddress(url, {});
    return {
      open: () => openPostgresqlStore(storeOptions(url, { network: IDENTITY, dataDir })),
      source: () => openPostgresqlSource(address),
      target: () => openPostgresqlTarget(address, dataDir),
      auditLog: () => readAuditLog(address),
      remove: async () => {
        await cluster.query('postgres', `drop database ${name} with (force)`);
      },
    };
  };
}

function nameOf(url: string): string {
  return new URL(url).pathname.slice(1);
}
