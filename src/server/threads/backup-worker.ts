/** The process that makes one backup. */

import { verifySignature } from '../../base/crypto/ed25519.ts';
import { createBackup } from '../../maintenance/backup/create.ts';
import { openLmdbSource } from '../../store/lmdb/source.ts';
import { parseStoreAddress } from '../../store/postgresql/address.ts';
import { openPostgresqlSource } from '../../store/postgresql/source.ts';
import type { StateSource } from '../../store/stream/ports.ts';
import { carryOutTask } from './apart-task.ts';
import type { BackupTask, MadeFile } from './backup-process.ts';
import { openSigner } from './open-signer.ts';

carryOutTask(backUp);

async function backUp({ keySource, keys, ...task }: BackupTask): Promise<MadeFile> {
  const opened = await openSigner(keySource, keys);
  const source = await openSource(task);
  try {
    const order = { ...task, source, verify: verifySignature };
    const { bytes, manifest } = await createBackup({ ...order, signer: opened.signer });
    return { bytes, revision: manifest.revision };
  } finally {
    await Promise.all([opened.close(), source.close()]);
  }
}

function openSource({
  dataDir,
  database,
}: Omit<BackupTask, 'keySource' | 'keys'>): Promise<StateSource> {
  return database === null
    ? openLmdbSource(dataDir)
    : openPostgresqlSource(parseStoreAddress(database.url, database.environment));
}
