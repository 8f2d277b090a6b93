/** Opens the store of a network in a database, in order to fill it. */
import { join } from 'node:path';
import { readGenesisFile } from '../src/cli/kernel/files.ts';
import { FILES } from '../src/server/config/data-folder.ts';
import { networkOf } from '../src/store/network-identity.ts';
import { openPostgresqlStore } from '../src/store/postgresql/store.ts';
import type { Store } from '../src/store/store.ts';
import { storeOptions } from '../test/support/postgresql-store.ts';

/** `dataDir` contains the genesis block of the network, and is marked as in use. */
export async function storeIn(url: string, dataDir: string): Promise<Store> {
  const genesis = await readGenesisFile(join(dataDir, FILES.genesis));
  return openPostgresqlStore(storeOptions(url, { network: networkOf(genesis), dataDir }));
}
