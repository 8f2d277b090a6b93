/**
 * Where the authorities of tests keep their state: in their folder, or with `MESH_TEST_STORE=postgresql` in a
 * database for each folder, so that the whole suite shows what does not depend on the store.
 */
import { after } from 'node:test';
import type { Flags } from '../../src/config/options.ts';
import { startCluster, type TestCluster } from './postgresql.ts';
import { migratedDatabase } from './postgresql-store.ts';

const isPostgresql = process.env.MESH_TEST_STORE === 'postgresql';

let cluster: Promise<TestCluster> | undefined;
/** Addresses of databases by folder: an authority that starts again finds its state. */
const databases = new Map<string, Promise<string>>();

if (isPostgresql) {
  after(async () => {
    await (await cluster)?.[Symbol.asyncDispose]();
  });
}

export async function storeFlags(dataDir: string): Promise<Flags> {
  if (!isPostgresql) return {};
  let database = databases.get(dataDir);
  if (database === undefined) {
    cluster ??= startCluster({ settings: { max_connections: '200' } });
    database = cluster.then(migratedDatabase);
    databases.set(dataDir, database);
  }
  return { store: await database };
}

/** Databases of hundreds of tests would fill the disk. */
export async function removeStore(dataDir: string): Promise<void> {
  const url = await databases.get(dataDir);
  if (url === undefined) return;
  databases.delete(dataDir);
  const name = new URL(url).pathname.slice(1);
  await (await cluster)?.query('postgres', `drop database ${name} with (force)`);
}
