/** The process that makes one backup. */

import { verifySignature } from '../../base/crypto/ed25519.ts';
import { signingKeysIn } from '../../base/signer/authority-signer.ts';
import { createBackup } from '../../maintenance/backup/create.ts';
import { openLmdbSource } from '../../store/lmdb/source.ts';
import { parseStoreAddress } from '../../store/postgresql/address.ts';
import { openPostgresqlSource } from '../../store/postgresql/source.ts';
import type { StateSource } from '../../store/stream/ports.ts';
import type { BackupTask, MadeFile } from './apart.ts';
import { carryOutTask } from './apart-task.ts';
import { openSigner } from './open-signer.ts';

carryOutTask(backUp);

async function backUp({ keySource, key, ...task }: BackupTask): Promise<MadeFile> {
  const source = await openSource(task);
  try {
    const { bytes, manifest } = await createBackup({
      ...task,
      source,
      openSigner: (terms) => openSigner(keySource, signingKeysIn(terms, key)),
      verify: verifySignature,
    });
    return { bytes, revision: manifest.revision };
  } finally {
    await source.close();
  }
}

function openSource({
  dataDir,
  database,
}: Pick<BackupTask, 'dataDir' | 'database'>): Promise<StateSource> {
  return database === null
    ? openLmdbSource(dataDir)
    : openPostgresqlSource(parseStoreAddress(database.url, database.environment));
}
