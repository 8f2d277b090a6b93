/** Databases with empty tables of this program, copied from a template in a cluster that all files of a run share. */
import { type ClusterPlace, type Databases, databasesAt, startCluster } from './postgresql.ts';
import { migratedDatabase } from './postgresql-store.ts';

/** Set by the run for its files, as JSON. */
const SHARED = 'MESH_TEST_CLUSTER';

interface SharedCluster extends ClusterPlace {
  /** The database that is copied. */
  readonly template: string;
}

const SETTINGS = {
  max_connections: '400',
  // Nothing follows this cluster, and it does not have to survive a crash, so its log is as short as possible.
  wal_level: 'minimal',
  max_wal_senders: '0',
  full_page_writes: 'off',
  max_wal_size: '1GB',
};

export interface EmptyStores extends Pick<Databases, 'query'> {
  /** Creates a database; returns its address. */
  create(): Promise<string>;
}

/** Uses the cluster of the run, or starts one that ends with this process. */
export async function emptyStores(): Promise<EmptyStores> {
  const shared = process.env[SHARED];
  const { template, ...place }: SharedCluster =
    shared === undefined ? await startSharedCluster() : JSON.parse(shared);
  const { createDatabase, query } = databasesAt(place);
  // Twice as fast as the other strategy, which writes every page to the log.
  return { create: () => createDatabase(`template ${template} strategy file_copy`), query };
}

/** Starts a cluster for the files of a run, which find it in their environment. */
export async function shareCluster(): Promise<void> {
  process.env[SHARED] = JSON.stringify(await startSharedCluster());
}

async function startSharedCluster(): Promise<SharedCluster> {
  const cluster = await startCluster({ settings: SETTINGS, isTrusting: true, isLeftToEnd: true });
  const template = new URL(await migratedDatabase(cluster)).pathname.slice(1);
  return { port: cluster.port, socketFolder: cluster.socketFolder, template };
}
