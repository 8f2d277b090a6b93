/** `mesh-na store verify` and `mesh-na store salvage`: whether a state is sound, and what is left of one that is not. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { EXIT, failure, onLocalFiles } from './exit-codes.ts';
import { dataDirOption, examples, jsonOption } from './options.ts';
import { type OutputOptions, printResult } from './output.ts';
import { whileWaiting } from './progress.ts';
import { assertCanSave, saveFile } from './saved-file.ts';
import {
  addPlaceOptions,
  databaseOf,
  onState,
  openSource,
  type StatePlace,
} from './store-address.ts';

interface VerifyOptions extends OutputOptions, StatePlace {}

interface SalvageOptions extends OutputOptions {
  readonly dataDir: string;
  readonly to: string;
  readonly force?: boolean;
}

export function addDamageCommands(store: Command): void {
  addPlaceOptions(store.command('verify'))
    .description('read every row, and check checksums, signatures, audit log and signed lists')
    .addOption(jsonOption())
    .addHelpText(
      'after',
      '\nIt needs no key, and may run while the state is served. Exit code 4 when anything is wrong.',
    )
    .addHelpText('after', examples(['mesh-na store verify --data-dir /var/lib/mesh']))
    .action(verify);
  store
    .command('salvage')
    .description('export what can be read of a data folder that is damaged')
    .addOption(dataDirOption())
    .requiredOption('--to <file>', 'where it is written, as lines of JSON')
    .option('--force', 'overwrite the file')
    .addOption(jsonOption())
    .addHelpText(
      'after',
      '\nThe folder must not be served. The file ends with what is lost; exit code 4 when anything is.',
    )
    .addHelpText('after', examples(['mesh-na store salvage --to /backup/salvaged.ndjson']))
    .action(salvage);
}

async function verify(options: VerifyOptions): Promise<void> {
  const { verifySignature } = await import('../base/crypto/ed25519.ts');
  const { soundTables } = await import('../maintenance/backup/sound-state.ts');
  const { facts, tables } = await refusedWhenUnsound(async () => {
    const source = await openSource(options.dataDir, await databaseOf(options));
    try {
      const tables = await whileWaiting('Reading the state', () =>
        soundTables(source, verifySignature),
      );
      return { facts: source.facts, tables };
    } finally {
      await source.close();
    }
  });
  const rows = Object.fromEntries(Object.entries(tables).map(([table, { rows }]) => [table, rows]));
  const shown = Object.entries(rows).map(([table, count]) => `${table} ${count}`);
  const { revision, epoch } = facts;
  printResult(
    options,
    { sound: true, network: facts.network.network_name, epoch, revision, rows },
    [
      `The state of "${facts.network.network_name}" is sound at revision ${revision} of epoch ${epoch}.`,
      `Rows: ${shown.join(', ')}`,
    ],
  );
}

/** A state that is not sound is something else than one that cannot be reached. */
async function refusedWhenUnsound<T>(work: () => Promise<T>): Promise<T> {
  const { DamagedState } = await import('../store/rows.ts');
  const { UnsoundState } = await import('../maintenance/backup/check-state.ts');
  return onState(async () => {
    try {
      return await work();
    } catch (cause) {
      if (!(cause instanceof DamagedState || cause instanceof UnsoundState)) throw cause;
      throw failure(EXIT.refused, 'state_not_sound', cause.message);
    }
  });
}

async function salvage({ dataDir, to, force = false, ...options }: SalvageOptions): Promise<void> {
  onLocalFiles(() => assertCanSave(to, { overwrites: force }));
  await assertInFolder(dataDir);
  const { readRemains } = await import('../store/lmdb/remains.ts');
  const { salvageLines } = await import('../store/salvage.ts');
  const rows: { [table: string]: number } = {};
  const lost: string[] = [];
  await onState(async () => {
    const lines = salvageLines(readRemains(dataDir), { rows, lost });
    saveFile(to, lines, { isSecret: true, overwrites: force });
  });
  const shown = Object.entries(rows).map(([table, count]) => `${table} ${count}`);
  printResult(options, { file: to, rows, lost: lost.length }, [
    `What can be read is written to ${to}: ${shown.join(', ') || 'nothing'}.`,
    ...(lost.length === 0 ? ['Nothing is lost.'] : [`Lost, as the file says: ${lost.length}.`]),
    ...lost.slice(0, MOST_SHOWN).map((sentence) => `  ${sentence}`),
  ]);
  if (lost.length > 0) throw failure(EXIT.refused, 'state_lost', '');
}

/** A folder whose state was moved to a database may have that of before, which can be exported. */
async function assertInFolder(dataDir: string): Promise<void> {
  const { DATABASE_FILE } = await import('../store/lmdb/folder-state.ts');
  if (existsSync(join(dataDir, DATABASE_FILE))) return;
  const [server] = (await onState(() => databaseOf({ dataDir }))) ?? [];
  if (server === undefined) return;
  throw failure(
    EXIT.unusable,
    'store_unusable',
    `The state of ${dataDir} is in the database at ${server.shown}, and salvage reads data folders alone; restore a backup, or promote a standby`,
  );
}

const MOST_SHOWN = 20;
