/** The places that `mesh-na store move` can use. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { systemRuntime } from '../../base/runtime.ts';
import type { Place } from '../../maintenance/move/move.ts';
import { storeAddress } from './place.ts';

const FOLDER = /^lmdb:(.+)$/;

/** `dataDir` is the folder of the keys, which is marked as in use if the state is in a database. */
export async function placeOf(text: string, dataDir: string): Promise<Place> {
  const folder = FOLDER.exec(text)?.[1];
  return folder === undefined ? databasePlace(text, dataDir) : folderPlace(text, folder);
}

async function folderPlace(shown: string, folder: string): Promise<Place> {
  const { openLmdbSource } = await import('../../store/lmdb/source.ts');
  return {
    shown,
    openSource: () => openLmdbSource(folder),
    isServable: async () => existsSync(join(folder, 'state')),
    async hold() {
      const { holdFolder } = await import('../../store/lmdb/retire.ts');
      return holdFolder(folder);
    },
    async receive() {
      const { openLmdbReceiver } = await import('../../store/lmdb/receiver.ts');
      return openLmdbReceiver(folder);
    },
  };
}

async function databasePlace(url: string, dataDir: string): Promise<Place> {
  const address = await storeAddress(url);
  const { moverOptions } = await import('../../store/open.ts');
  const { openPostgresqlSource } = await import('../../store/postgresql/source.ts');
  const held = await import('../../store/postgresql/held.ts');
  const mover = moverOptions(systemRuntime);
  return {
    shown: `postgresql://${address.map(({ shown }) => shown).join(',')}`,
    openSource: () => openPostgresqlSource(address),
    isServable: () => held.isServable(address),
    hold: () => held.holdDatabase({ ...mover, address }),
    async receive() {
      const { openPostgresqlReceiver } = await import('../../store/postgresql/receiver.ts');
      return openPostgresqlReceiver({ ...mover, address, dataDir });
    },
  };
}
