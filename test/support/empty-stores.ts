/** The cluster that all files of a run share, with a database whose empty tables of this program are copied. */
import { type ClusterPlace, type Databases, databasesAt, startCluster } from './postgresql.ts';
import { migratedDatabase } from './postgresql-store.ts';

/** Set by the run for its files, as JSON. */
const SHARED = 'MESH_TEST_CLUSTER';

interface SharedCluster extends ClusterPlace {
  /** The database that is copied; its sort order is not that of the bytes, because a store must not depend on it. */
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

export interface EmptyStores extends Databases, ClusterPlace {
  /** Creates a database with empty tables; returns its address. */
  createStore(): Promise<string>;
  /** Removes the database with this address. */
  remove(url: string): Promise<void>;
}

/** Uses the cluster of the run, or starts one that ends with this process. */
export async function emptyStores(): Promise<EmptyStores> {
  const shared = process.env[SHARED];
  const { template, ...place }: SharedCluster =
    shared === undefined ? await startSharedCluster() : JSON.parse(shared);
  const databases = databasesAt(place);
  return {
    ...place,
    ...databases,
    // Twice as fast as the other strategy, which writes every page to the log.
    createStore: () => databases.createDatabase(`template ${template} strategy file_copy`),
    async remove(url) {
      const name = new URL(url).pathname.slice(1);
      await databases.query('postgres', `drop database if exists ${name} with (force)`);
    },
  };
}

/** Starts a cluster for the files of a run, which find it in their environment. */
export async function shareCluster(): Promise<void> {
  process.env[SHARED] = JSON.stringify(await startSharedCluster());
}

async function startSharedCluster(): Promise<SharedCluster> {
  const cluster = await startCluster({ settings: SETTINGS, isTrusting: true, isLeftToEnd: true });
  const english = `template template0 locale_provider icu icu_locale 'en'`;
  const template = new URL(await migratedDatabase(cluster, english)).pathname.slice(1);
  return { port: cluster.port, socketFolder: cluster.socketFolder, template };
}
