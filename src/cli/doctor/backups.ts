/** Checks whether there is a recent, sound backup of this network. */

import { join } from 'node:path';
import { verifySignature } from '../../base/crypto/ed25519.ts';
import { messageOf } from '../../base/error-message.ts';
import { formatInstant } from '../../base/timestamp.ts';
import { verifyBackup } from '../../maintenance/backup/check-state.ts';
import { readBackup } from '../../maintenance/backup/file.ts';
import { createKeptFiles } from '../../maintenance/backup/kept-files.ts';
import { type ListedBackup, listBackups } from '../../maintenance/backup/list.ts';
import type { BackupSettings } from '../../maintenance/backup/schedule.ts';
import type { GenesisBlock } from '../../protocol/records/genesis.ts';
import { instantOf } from '../../protocol/records/record.ts';
import { type Finding, fine, unknown, warning, wrong } from './finding.ts';

export interface BackupOptions {
  /** Null when no folder is configured. */
  readonly settings: BackupSettings | null;
  readonly genesis: GenesisBlock;
  /** Whether to read the newest backup completely. */
  readonly deep: boolean;
  readonly now: number;
}

const HOUR = 3_600_000;
const MAKE = 'Run mesh-na backup create, and check why the service creates none';

export async function checkBackups(options: BackupOptions): Promise<Finding> {
  const { settings } = options;
  if (settings === null) {
    return unknown('backups', 'No backup folder is configured', 'Set --backup-to');
  }
  try {
    return await checkFolder(settings, options);
  } catch (cause) {
    return wrong('backups', messageOf(cause), 'Set --backup-to to the folder of the backups');
  }
}

async function checkFolder(
  { folder, every }: BackupSettings,
  { genesis, deep, now }: BackupOptions,
): Promise<Finding> {
  const listed = await listBackups(folder, verifySignature);
  const newest = listed
    .flatMap((backup) => ownBackup(backup, genesis))
    .toSorted((a, b) => b.madeAt - a.madeAt)[0];
  const problem = deep && newest !== undefined ? await problemOf(join(folder, newest.name)) : null;
  if (problem !== null) {
    return wrong('backups', `The newest backup, ${newest?.name}, is damaged: ${problem}`, MAKE);
  }
  // The name of a scheduled backup shows its age, even when it is encrypted.
  const named = await createKeptFiles(folder, genesis).newest();
  const madeAt = Math.max(newest?.madeAt ?? 0, named ?? 0);
  if (madeAt === 0) return nothingKnown(folder, listed);
  if (madeAt > now + HOUR) {
    const found = `The newest backup is dated ${formatInstant(madeAt)}, ahead of this clock`;
    return warning('backups', found, 'Set the clock of this machine, or of the one that made it');
  }
  const found = `The newest backup is ${Math.floor((now - madeAt) / HOUR)} hours old`;
  return now - madeAt < 2 * every ? fine('backups', found) : warning('backups', found, MAKE);
}

interface OwnBackup {
  readonly name: string;
  readonly madeAt: number;
}

function ownBackup({ name, content }: ListedBackup, genesis: GenesisBlock): OwnBackup[] {
  if (typeof content === 'string') return [];
  if (content.network.root_public_key !== genesis.root_public_key) return [];
  return [{ name, madeAt: instantOf(content.created_at) }];
}

function nothingKnown(folder: string, listed: readonly ListedBackup[]): Finding {
  const encrypted = listed.filter(({ content }) => content === 'encrypted').length;
  if (encrypted === 0) return wrong('backups', `${folder} has no backup of this network`, MAKE);
  return unknown(
    'backups',
    `${folder} has ${encrypted} encrypted backups, whose age and content cannot be checked`,
    'Run mesh-na backup verify with the identity that decrypts them',
  );
}

async function problemOf(path: string): Promise<string | null> {
  try {
    await verifyBackup(await readBackup(path, []), verifySignature);
    return null;
  } catch (cause) {
    return messageOf(cause);
  }
}
