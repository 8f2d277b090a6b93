/** Reads a whole backup and runs all checks on it [backup-5]. */
import type { VerifySignature } from '../../base/crypto/primitives.ts';
import { factsOf, genesisOf, type Manifest } from '../../store/stream/manifest.ts';
import { readStream } from '../../store/stream/read.ts';
import type { RowWatcher } from '../../store/stream/write.ts';
import { createStateCheck, type StateCheck, sequencesOf, UnsoundState } from './check-state.ts';

export interface VerifiedBackup {
  readonly manifest: Manifest;
  /** The number of attestations and treaties whose signatures were checked. */
  readonly signedRecords: number;
  readonly check: StateCheck;
}

/** Rejects with a one-sentence error if anything is wrong. `watcher` creates an additional watcher of each row. */
export async function verifyBackup(
  bytes: AsyncIterable<Uint8Array>,
  verify: VerifySignature,
  watcher: (manifest: Manifest) => RowWatcher = () => () => undefined,
): Promise<VerifiedBackup> {
  const { manifest, batches } = await readStream(bytes, verify);
  const check = createStateCheck(manifest.network, verify);
  const watch = watcher(manifest);
  for await (const { table, rows } of batches) {
    for (const row of rows) {
      check.watch(table, row);
      watch(table, row);
    }
  }
  check.finish(factsOf(manifest));
  const { crlSequence, feedSequence } = sequencesOf(check.lists, manifest.network.network_name);
  if (crlSequence !== manifest.crl_sequence || feedSequence !== manifest.feed_sequence) {
    throw new UnsoundState('the sequence numbers of its lists differ from its manifest');
  }
  const { current } = check.lists.keys();
  const key = current?.publicKey ?? manifest.network.authority_public_key;
  if (genesisOf(manifest).network_authority.public_key !== key) {
    throw new UnsoundState('its genesis block does not name its current authority key');
  }
  return { manifest, signedRecords: check.signedRecords, check };
}
