/** Makes a backup while the service runs; checks the state while reading it, and the file after writing it. */
import { genesisInForce } from '../../authority/authority-keys.ts';
import type { RecordSigner, VerifySignature } from '../../base/crypto/primitives.ts';
import type { SigningTerm } from '../../base/signer/authority-signer.ts';
import { formatInstant } from '../../base/timestamp.ts';
import type { GenesisBlock } from '../../protocol/records/genesis.ts';
import { asFoundedIn, assertSameNetwork, networkOf } from '../../store/network-identity.ts';
import { type Manifest, signedManifest } from '../../store/stream/manifest.ts';
import type { StateSource } from '../../store/stream/ports.ts';
import { streamOf, summarize } from '../../store/stream/write.ts';
import { createStateCheck, sequencesOf, verifyBackup } from './check-state.ts';
import { encryptionFor } from './encryption.ts';
import { writeChecked } from './file.ts';

export interface BackupOrder {
  readonly source: StateSource;
  /** The configured genesis block; the state may have a later one. */
  readonly genesis: GenesisBlock;
  /** Opens the signer with the keys of the last of these terms; the configured one if there are none. */
  openSigner(terms: readonly SigningTerm[]): Promise<OpenedSigner>;
  readonly verify: VerifySignature;
  readonly path: string;
  /** Empty if the file is not encrypted. */
  readonly recipients: readonly string[];
  /** Milliseconds since the epoch. */
  readonly now: number;
}

export interface OpenedSigner {
  readonly signer: RecordSigner;
  close(): Promise<void>;
}

export interface MadeBackup {
  readonly manifest: Manifest;
  readonly bytes: number;
}

/** If anything is wrong, rejects with a one-sentence error and leaves no file. */
export async function createBackup(order: BackupOrder): Promise<MadeBackup> {
  const { source, path, recipients, verify } = order;
  const manifest = await describe(order);
  const encryption = recipients.length === 0 ? null : await encryptionFor(recipients);
  const bytes = await writeChecked({
    path,
    bytes: streamOf(manifest, source),
    encryption,
    async check(written) {
      await verifyBackup(written, verify);
    },
  });
  return { manifest, bytes };
}

async function describe(order: BackupOrder): Promise<Manifest> {
  const { source, genesis: configured, verify, now } = order;
  const { facts, database } = source;
  const network = await asFoundedIn(source.tables, facts.network, networkOf(configured));
  assertSameNetwork(facts.network, network, 'the store');
  const check = createStateCheck(facts.network, verify);
  const tables = await summarize(source, check.watch);
  check.finish(facts);
  const keys = check.lists.keys();
  const genesis = genesisInForce(keys, configured);
  const sequences = sequencesOf(check.lists, genesis.network_name);
  const parts = { createdAt: formatInstant(now), genesis, database, facts, tables, ...sequences };
  const { signer, close } = await order.openSigner(keys.terms);
  try {
    return signedManifest(parts, signer);
  } finally {
    await close();
  }
}
