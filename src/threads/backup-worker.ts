/** The process that makes one backup: it ends with its work, or with the service that has started it. */
import { setPriority } from 'node:os';
import { createBackup } from '../backup/create.ts';
import { signerFromSeed, verifySignature } from '../crypto/ed25519.ts';
import { openLmdbSource } from '../store/lmdb/source.ts';
import { parseStoreAddress } from '../store/postgresql/address.ts';
import { openPostgresqlSource } from '../store/postgresql/source.ts';
import type { StateSource } from '../store/stream/ports.ts';
import type { BackupOutcome, BackupTask } from './backup-process.ts';

const PRIORITY = 10;

setPriority(PRIORITY);
// A stop is the service's decision, also where the whole group of processes gets the signal.
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => undefined);
process.once('disconnect', endWithoutService);
process.once('message', (task: BackupTask) => void carryOut(task).then(report));

async function carryOut({ seed, ...task }: BackupTask): Promise<BackupOutcome> {
  try {
    const source = await openSource(task);
    try {
      const order = { ...task, source, verify: verifySignature };
      const signer = signerFromSeed(Buffer.from(seed));
      const { bytes, manifest } = await createBackup({ ...order, signer });
      return { ok: true, bytes, revision: manifest.revision };
    } finally {
      await source.close();
    }
  } catch (cause) {
    return { ok: false, problem: cause instanceof Error ? cause.message : String(cause) };
  }
}

function openSource({ dataDir, database }: Omit<BackupTask, 'seed'>): Promise<StateSource> {
  return database === null
    ? Promise.resolve(openLmdbSource(dataDir))
    : openPostgresqlSource(parseStoreAddress(database.url, database.environment));
}

function report(outcome: BackupOutcome): void {
  process.off('disconnect', endWithoutService);
  process.send?.(outcome, () => process.disconnect());
}

/** Nobody catches it. What is not complete is removed by the next start. */
function endWithoutService(): never {
  throw new Error('The service that wanted this backup has ended');
}
