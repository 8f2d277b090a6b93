/**
 * The PostgreSQL of the run, for files that need databases. A file that stops the server, changes its settings or
 * authenticates starts one of its own.
 */
import { after } from 'node:test';
import { type EmptyStores, emptyStores } from './empty-stores.ts';

/** Call it where a file begins: the databases are removed when the file ends. */
export async function sharedCluster(): Promise<Omit<EmptyStores, 'remove'>> {
  const cluster = await emptyStores();
  const created: string[] = [];
  after(async () => {
    for (const url of created) await cluster.remove(url);
  });
  const noted = async (url: Promise<string>) => {
    created.push(await url);
    return url;
  };
  return {
    ...cluster,
    createDatabase: (definition) => noted(cluster.createDatabase(definition)),
    createStore: () => noted(cluster.createStore()),
  };
}
