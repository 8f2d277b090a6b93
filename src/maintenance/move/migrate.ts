/**
 * Brings a data folder whose state has a layout of an earlier version to the present one. A new database is made
 * beside the old one, compared with it row by row, and takes its place by one rename: a process that is killed leaves
 * the old state or the new one. The old database is kept.
 */
import { existsSync, linkSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { VerifySignature } from '../../base/crypto/primitives.ts';
import { syncFolder } from '../../store/lmdb/arrival.ts';
import { lockFolder } from '../../store/lmdb/folder-lock.ts';
import { DATABASE_FILE } from '../../store/lmdb/folder-state.ts';
import { openFormerSource, readSchemaVersion } from '../../store/lmdb/former-source.ts';
import { OLDEST_READ, SCHEMA_VERSION } from '../../store/lmdb/ownership.ts';
import { openLmdbSource } from '../../store/lmdb/source.ts';
import { openLmdbTarget } from '../../store/lmdb/target.ts';
import type { NetworkIdentity } from '../../store/network-identity.ts';
import { batchesOf, fill } from '../../store/stream/copy.ts';
import { differingTables } from '../../store/stream/manifest.ts';
import type { StateSource } from '../../store/stream/ports.ts';
import { soundTables } from '../backup/sound-state.ts';

export interface MigratedFolder {
  readonly from: number;
  readonly to: number;
  /** Where the old database is; null when there was nothing to do. */
  readonly kept: string | null;
}

const STAGING = '.migration';

/** Rejects with one sentence when the state cannot be brought to the present layout; it stays as it was then. */
export async function migrateFolder(
  dataDir: string,
  network: NetworkIdentity,
  verify: VerifySignature,
): Promise<MigratedFolder> {
  const lock = lockFolder(dataDir);
  const staging = join(dataDir, STAGING);
  try {
    const from = readSchemaVersion(dataDir);
    if (from === null) throw new Error(`${dataDir} holds no state of an authority`);
    if (from === SCHEMA_VERSION) return { from, to: SCHEMA_VERSION, kept: null };
    if (from > SCHEMA_VERSION || from < OLDEST_READ) {
      throw new Error(
        `${dataDir} has schema version ${from}; this program migrates versions ${OLDEST_READ} to ${SCHEMA_VERSION - 1}`,
      );
    }
    rmSync(staging, { recursive: true, force: true });
    await copy(openFormerSource(dataDir, network), staging, verify);
    return { from, to: SCHEMA_VERSION, kept: replace(dataDir, staging, from) };
  } finally {
    rmSync(staging, { recursive: true, force: true });
    lock.release();
  }
}

async function copy(source: StateSource, staging: string, verify: VerifySignature): Promise<void> {
  try {
    const before = await soundTables(source, verify);
    await fill(openLmdbTarget(staging), batchesOf(source), source.facts);
    const made = openLmdbSource(staging);
    try {
      const differing = differingTables(before, await soundTables(made, verify));
      if (differing.length === 0) return;
      throw new Error(`What was written differs from what was read: ${differing.join(', ')}`);
    } finally {
      await made.close();
    }
  } finally {
    await source.close();
  }
}

/** Returns the path of the old database. */
function replace(dataDir: string, staging: string, from: number): string {
  const database = join(dataDir, DATABASE_FILE);
  const kept = `${database}.schema-${from}`;
  // An earlier attempt may have come this far; both names are of one file until the next line.
  if (!existsSync(kept)) linkSync(database, kept);
  renameSync(join(staging, DATABASE_FILE), database);
  syncFolder(join(dataDir, 'state'));
  return kept;
}
