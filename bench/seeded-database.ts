/** The store of a network in a database, for filling it. */
import { join } from 'node:path';
import { readGenesisFile } from '../src/cli/json-file.ts';
import { FILES } from '../src/server/config/data-folder.ts';
import { networkOf } from '../src/store/network-identity.ts';
import { openPostgresqlStore } from '../src/store/postgresql/store.ts';
import type { Store } from '../src/store/store.ts';
import { storeOptions } from '../test/support/postgresql-store.ts';

/** `dataDir` has the genesis of the network, and is marked as in use. */
export async function storeIn(url: string, dataDir: string): Promise<Store> {
  const genesis = await readGenesisFile(join(dataDir, FILES.genesis));
  return openPostgresqlStore(storeOptions(url, { network: networkOf(genesis), dataDir }));
}
