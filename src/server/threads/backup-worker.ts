/** The process that makes one backup, and exits with it or with the service. */
import { setPriority } from 'node:os';
import { verifySignature } from '../../base/crypto/ed25519.ts';
import { signingKeysIn } from '../../base/signer/authority-signer.ts';
import { createBackup } from '../../maintenance/backup/create.ts';
import { openLmdbSource } from '../../store/lmdb/source.ts';
import { parseStoreAddress } from '../../store/postgresql/address.ts';
import { openPostgresqlSource } from '../../store/postgresql/source.ts';
import type { StateSource } from '../../store/stream/ports.ts';
import type { BackupProcedures, BackupTask, MadeFile } from './backup-child.ts';
import { createPeer, type Message } from './rpc.ts';
import { openSigner } from './signer-thread.ts';

const PRIORITY = 10;

giveWay();
// The service decides when to stop, even if the whole process group gets the signal.
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => undefined);
process.once('disconnect', endWithoutService);
const channel = {
  // Only the outcome is sent; then nothing is left to do.
  postMessage: (outcome: Message) => process.send?.(outcome, () => process.disconnect()),
  on: (event: 'message', listener: (message: Message) => void) => process.on(event, listener),
};
createPeer(channel, {
  backUp: (task: BackupTask) =>
    backUp(task).finally(() => process.off('disconnect', endWithoutService)),
} satisfies BackupProcedures);

/** A sandboxed service, such as the systemd sample, may not be allowed to change priorities. */
function giveWay(): void {
  try {
    setPriority(PRIORITY);
  } catch {
    // It makes the backup at the priority that it has.
  }
}

/** Not caught. Incomplete files are removed at the next start. */
function endWithoutService(): never {
  throw new Error('The service that started this backup has ended');
}

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
