/** `mesh-na backup`: creates and verifies backups of a state, even while an authority serves it. */

import type { Command } from 'commander';
import { MOST_BYTES } from '../../base/byte-bounds.ts';
import { counted } from '../../base/counts.ts';
import { readArgument } from '../../base/named-file.ts';
import { systemRuntime } from '../../base/runtime.ts';
import type { ListedBackup } from '../../maintenance/backup/list.ts';
import type { Manifest, TableSummaries } from '../../store/stream/manifest.ts';
import { DATA_DIR, define, type OptionsIn, option, WIDE } from '../kernel/command.ts';
import { EXIT, failure, onLocalFiles } from '../kernel/errors.ts';
import { assertCanSave, readGenesisFile, systemCode } from '../kernel/files.ts';
import { type OutputOptions, printResult } from '../kernel/output.ts';
import { type Column, column, type TableOptions, tableOf, timeColumn } from '../kernel/table.ts';
import { whileWaiting } from '../kernel/terminal.ts';
import { onState, openSource, settingsOf, storeOption } from './place.ts';

export const STATE_IN_DATABASE = 'PostgreSQL database with the state, as for serve';

export const SIGNER = option(
  '--signer <address>',
  'socket of the signer with the authority key, as for serve',
  { env: 'MESH_SIGNER' },
);

export const IDENTITY = option('--identity <file>', 'age identity that decrypts the backup');

const CREATE = [
  DATA_DIR,
  storeOption(STATE_IN_DATABASE),
  SIGNER,
  option('--to <file>', 'write the backup to this file', { required: true }),
  option(
    '--recipient <age1…>',
    'encrypt for this age recipient (repeatable; default: no encryption)',
    { many: true },
  ),
  option('--force', 'overwrite the file'),
] as const;

const VERIFY = [
  IDENTITY,
  option('--genesis <file>', 'trusted genesis (default: the one in the backup)'),
] as const;

export function addBackupCommands(backup: Command): void {
  define(backup, 'create', {
    about: 'write a backup, and verify it before giving it its final name',
    options: CREATE,
    examples: ['mesh-na backup create --to /backup/mesh.backup'],
    run: runCreate,
  });
  define(backup, 'verify', {
    about: 'read every row, and verify digests, signatures, audit log and signed lists',
    args: [['<file>', 'the backup']],
    options: VERIFY,
    examples: ['mesh-na backup verify /backup/mesh.backup'],
    run: (options, [file = '']) => runVerify(file, options),
  });
  define(backup, 'list', {
    about: 'list the files named *.backup in a folder',
    args: [['<folder>', 'folder of backups']],
    options: [WIDE],
    examples: ['mesh-na backup list /backup'],
    run: (options, [folder = '']) => runList(folder, options),
  });
}

async function runCreate(options: OptionsIn<typeof CREATE> & OutputOptions): Promise<void> {
  const { to, dataDir, store, recipient: recipients = [], force = false } = options;
  onLocalFiles(() => assertCanSave(to, { overwrites: force }));
  const { verifySignature: verify } = await import('../../base/crypto/ed25519.ts');
  const { createBackup } = await import('../../maintenance/backup/create.ts');
  const { signingKeysIn } = await import('../../base/signer/authority-signer.ts');
  const { openSigner } = await import('../../server/threads/signer-thread.ts');
  const { manifest, bytes } = await onState(async () => {
    const flags = { dataDir, store, signer: options.signer };
    const { database, genesis, keySource, publicKey, keyId } = await settingsOf(flags);
    const source = await openSource(dataDir, database?.address() ?? null);
    const now = systemRuntime.now();
    try {
      return await whileWaiting('Writing the backup', () =>
        createBackup({
          source,
          genesis,
          openSigner: (terms) =>
            openSigner(keySource(), signingKeysIn(terms, { publicKey, keyId })),
          verify,
          path: to,
          recipients,
          now,
        }),
      );
    } finally {
      await source.close();
    }
  });
  printResult(options, { file: to, bytes, ...summaryOf(manifest) }, [
    `Wrote and verified the backup ${to}.`,
    ...summaryText(manifest),
  ]);
}

async function runVerify(
  file: string,
  options: OptionsIn<typeof VERIFY> & OutputOptions,
): Promise<void> {
  const { verifySignature } = await import('../../base/crypto/ed25519.ts');
  const { readBackup } = await import('../../maintenance/backup/file.ts');
  const { verifyBackup } = await import('../../maintenance/backup/check-state.ts');
  const identities = identitiesIn(options.identity);
  const trusted = options.genesis === undefined ? null : await readGenesisFile(options.genesis);
  const { manifest, signedRecords } = await sound(file, () =>
    whileWaiting('Reading the backup', async () =>
      verifyBackup(await readBackup(file, identities), verifySignature),
    ),
  );
  const { root_public_key: root } = manifest.network;
  if (trusted !== null && trusted.root_public_key !== root) {
    throw unsound(file, `it belongs to another network, whose root key is ${root}`);
  }
  printResult(options, { valid: true, ...summaryOf(manifest), signed_records: signedRecords }, [
    `The backup ${file} is sound.`,
    ...summaryText(manifest),
    ...(trusted === null
      ? [`Its root key is ${root}: compare it with yours, or use --genesis.`]
      : []),
  ]);
}

/** Distinguishes a file that cannot be read from a backup that is damaged. */
export async function sound<T>(file: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    // Such an error already has an exit code and does not concern the backup.
    if (!(cause instanceof Error) || 'failure' in cause) throw cause;
    if (!('syscall' in cause)) throw unsound(file, cause.message);
    const problem = `${file} cannot be read (${systemCode(cause)})`;
    throw failure(EXIT.unusable, 'local_files', problem);
  }
}

function unsound(file: string, problem: string) {
  return failure(EXIT.refused, 'backup_not_sound', `${file} is not a usable backup: ${problem}`);
}

/** Returns the identities in the file: one per line, without comments. */
export function identitiesIn(file: string | undefined): string[] {
  if (file === undefined) return [];
  return onLocalFiles(() => readArgument(file, MOST_BYTES.settings).toString())
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'));
}

async function runList(folder: string, options: OutputOptions & TableOptions): Promise<void> {
  const { verifySignature } = await import('../../base/crypto/ed25519.ts');
  const { listBackups } = await import('../../maintenance/backup/list.ts');
  const backups = await listBackups(folder, verifySignature);
  printResult(
    options,
    { folder, backups: backups.map(jsonOf) },
    backups.length === 0 ? [`No backups in ${folder}.`] : tableOf(COLUMNS, backups, options),
  );
}

/** The content is a text when it cannot be read here. */
const COLUMNS: readonly Column<ListedBackup>[] = [
  column('FILE', ({ name }) => name),
  column('BYTES', ({ bytes }) => bytes),
  column('NETWORK', ({ content }) =>
    typeof content === 'string' ? content : content.network.network_name,
  ),
  timeColumn('MADE', ({ content }) => (typeof content === 'string' ? '' : content.created_at)),
  column('REVISION', ({ content }) => (typeof content === 'string' ? '' : content.revision)),
];

function jsonOf({ name, bytes, content }: ListedBackup) {
  const form = typeof content === 'string' ? content : 'plain';
  return { name, bytes, form, ...(typeof content === 'string' ? {} : summaryOf(content)) };
}

export function summaryOf(manifest: Manifest) {
  const { tables } = manifest;
  return {
    network_name: manifest.network.network_name,
    created_at: manifest.created_at,
    epoch: manifest.epoch,
    revision: manifest.revision,
    audit_length: manifest.audit_length,
    audit_head: manifest.audit_head,
    crl_sequence: manifest.crl_sequence,
    feed_sequence: manifest.feed_sequence,
    rows: {
      subjects: tables.subjects.rows,
      nonces: tables.nonces.rows,
      audit: tables.audit.rows,
      liveness: tables.liveness.rows,
      history: tables.history.rows,
    },
  };
}

/** The number of rows of each table. */
export function rowCounts(tables: TableSummaries): Readonly<Record<string, number>> {
  return Object.fromEntries(Object.entries(tables).map(([table, { rows }]) => [table, rows]));
}

export function countsText(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ');
}

export function summaryText(manifest: Manifest): string[] {
  const { network, created_at, epoch, revision, tables } = manifest;
  return [
    `Network "${network.network_name}" at revision ${revision} of epoch ${epoch}, created ${created_at}`,
    `Rows: ${countsText(rowCounts(tables))}`,
    `Revocation list ${manifest.crl_sequence}, feed ${manifest.feed_sequence}, ${counted(manifest.audit_length, 'audit entry', 'audit entries')}`,
  ];
}
