/** Makes a backup while the service runs; checks the state while reading it, and the file after writing it. */
import type { RecordSigner, VerifySignature } from '../../base/crypto/primitives.ts';
import { formatInstant } from '../../base/timestamp.ts';
import type { GenesisBlock } from '../../protocol/records/genesis.ts';
import { assertSameNetwork, networkOf } from '../../store/network-identity.ts';
import { type Manifest, signedManifest } from '../../store/stream/manifest.ts';
import type { StateSource } from '../../store/stream/ports.ts';
import { streamOf, summarize } from '../../store/stream/write.ts';
import { createStateCheck, sequencesOf } from './check-state.ts';
import { encryptionFor } from './encryption.ts';
import { writeChecked } from './file.ts';
import { verifyBackup } from './verify.ts';

export interface BackupOrder {
  readonly source: StateSource;
  readonly genesis: GenesisBlock;
  readonly signer: RecordSigner;
  readonly verify: VerifySignature;
  readonly path: string;
  /** Empty if the file is not encrypted. */
  readonly recipients: readonly string[];
  /** Milliseconds since the epoch. */
  readonly now: number;
}

export interface MadeBackup {
  readonly manifest: Manifest;
  readonly bytes: number;
  readonly signedRecords: number;
}

/** If anything is wrong, rejects with a one-sentence error and leaves no file. */
export async function createBackup(order: BackupOrder): Promise<MadeBackup> {
  const { source, path, recipients, verify } = order;
  const manifest = await describe(order);
  const encryption = recipients.length === 0 ? null : await encryptionFor(recipients);
  let signedRecords = 0;
  const bytes = await writeChecked({
    path,
    bytes: streamOf(manifest, source),
    encryption,
    async check(written) {
      signedRecords = (await verifyBackup(written, verify)).signedRecords;
    },
  });
  return { manifest, bytes, signedRecords };
}

async function describe(order: BackupOrder): Promise<Manifest> {
  const { source, genesis, signer, verify, now } = order;
  const { facts, database } = source;
  assertSameNetwork(facts.network, networkOf(genesis), 'the store');
  const check = createStateCheck(signer.publicKey, verify);
  const tables = await summarize(source, check.watch);
  check.finish(facts);
  const sequences = sequencesOf(check.lists, genesis.network_name);
  const parts = { createdAt: formatInstant(now), genesis, database, facts, tables, ...sequences };
  return signedManifest(parts, signer);
}
