/** `mesh-na store`: manages the state, in a data folder or in a database, and moves it while nobody serves it. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { counted } from '../../base/counts.ts';
import { systemRuntime } from '../../base/runtime.ts';
import type { Estimate, Moved, MoveStep, Place } from '../../maintenance/move/move.ts';
import { FILES } from '../../server/config/data-folder.ts';
import type { StatusOfLease, StatusOfStandby, StoreStatus } from '../../store/postgresql/status.ts';
import { DATA_DIR, define, type OptionsIn, option } from '../kernel/command.ts';
import { EXIT, failure, usageFailure } from '../kernel/errors.ts';
import { asJson, type OutputOptions, printNote, printResult } from '../kernel/output.ts';
import { assertConfirmed, whileWaiting } from '../kernel/terminal.ts';
import { countsText, rowCounts } from './backup.ts';
import { databaseOf, onState, openSource, PLACE, type StatePlace, storeAddress } from './place.ts';

type StoreCommandOptions = OutputOptions & StatePlace;

export function addStoreCommands(store: Command): void {
  define(store, 'migrate', {
    about: 'create the tables in a new database',
    options: PLACE,
    examples: ['mesh-na store migrate --store postgresql://mesh@db/mesh'],
    run: runMigrate,
  });
  define(store, 'status', {
    about: 'show what is in the database, which instances serve it, and its durability',
    options: PLACE,
    examples: ['mesh-na store status --store postgresql://mesh@db/mesh'],
    run: runStatus,
  });
  addMoveCommand(store);
  define(store, 'verify', {
    about: 'read every row, and verify checksums, signatures, audit log and signed lists',
    options: PLACE,
    notes:
      'It needs no key, and can run while the state is being served. Exit code 4 if anything is wrong.',
    examples: ['mesh-na store verify --data-dir /var/lib/mesh'],
    run: runVerify,
  });
}

async function runMigrate(options: StoreCommandOptions): Promise<void> {
  const { migrateDatabase } = await import('../../store/postgresql/status.ts');
  const address = await namedDatabase(options);
  const { place, from, to } = await onState(() => migrateDatabase(address));
  const text =
    from === to
      ? `The tables at ${place} already have schema version ${to}.`
      : `The tables at ${place} now have schema version ${to}.`;
  printResult(options, { place, from, to }, [text]);
}

async function runStatus(options: StoreCommandOptions): Promise<void> {
  const { readStatus } = await import('../../store/postgresql/status.ts');
  const address = await namedDatabase(options);
  const found = await onState(() => readStatus(address));
  const { place, schemaVersion, contents, durability } = found;
  const result = {
    place,
    schema_version: schemaVersion,
    network_name: contents?.networkName ?? null,
    revision: contents?.revision ?? null,
    rows: contents?.rows ?? null,
    lease: contents && asJson(contents.lease),
    standbys: contents?.standbys.map(asJson) ?? null,
    durability: asJson(durability),
  };
  printResult(options, result, statusText(found));
}

async function namedDatabase(options: StoreCommandOptions) {
  const address = await onState(() => databaseOf(options));
  if (address === null) throw usageFailure('Give the database with --store');
  return address;
}

function statusText({ place, schemaVersion, contents, durability }: StoreStatus): string[] {
  const text = [
    `Database: ${place}, PostgreSQL ${durability.server}`,
    `Schema version: ${schemaVersion === 0 ? 'no tables' : schemaVersion}`,
  ];
  if (contents !== null) {
    const { networkName, revision, rows, lease, standbys } = contents;
    text.push(
      `Network: ${networkName ?? 'none yet'}`,
      `Revision: ${revision}`,
      `Rows: ${countsText(rows)}`,
      `Active: ${activeText(lease)}`,
      ...standbys.map((standby) => `Standby: ${standbyText(standby)}`),
    );
  }
  return [...text, `Durability: ${durability.meaning}.`];
}

function activeText({
  holder,
  held,
  released,
  expires_at,
  link,
  term,
  remaining_seconds,
}: StatusOfLease): string {
  if (holder === null) return 'none yet';
  const linked = link === null ? '' : `, linked at ${link}`;
  if (held) {
    const lasts = (remaining_seconds ?? 0).toFixed(1);
    return `${holder}, in term ${term}; its lease lasts for ${lasts} s unless it is renewed${linked}`;
  }
  return released ? `none; ${holder} has stopped` : `none; ${holder} was lost at ${expires_at}`;
}

/** Each standby is seen once a second. */
const SILENT_SECONDS = 5;

function standbyText({ name, lag_revisions: lag, silent_seconds: silence }: StatusOfStandby) {
  const silent = silence < SILENT_SECONDS ? '' : `, last seen ${Math.floor(silence)} s ago`;
  if (lag === null) return `${name}, has not read the state yet${silent}`;
  return lag === 0
    ? `${name}, up to date${silent}`
    : `${name}, ${counted(lag, 'revision')} behind${silent}`;
}

async function runVerify(options: StoreCommandOptions): Promise<void> {
  const { verifySignature } = await import('../../base/crypto/ed25519.ts');
  const { soundTables } = await import('../../maintenance/backup/check-state.ts');
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
  const rows = rowCounts(tables);
  const { revision, epoch } = facts;
  printResult(
    options,
    { sound: true, network: facts.network.network_name, epoch, revision, rows },
    [
      `The state of "${facts.network.network_name}" is sound at revision ${revision} of epoch ${epoch}.`,
      `Rows: ${countsText(rows)}`,
    ],
  );
}

/** Distinguishes a damaged state from one that is unreachable. */
async function refusedWhenUnsound<T>(work: () => Promise<T>): Promise<T> {
  const { DamagedState } = await import('../../store/rows.ts');
  const { UnsoundState } = await import('../../maintenance/backup/check-state.ts');
  return onState(async () => {
    try {
      return await work();
    } catch (cause) {
      if (!(cause instanceof DamagedState || cause instanceof UnsoundState)) throw cause;
      throw failure(EXIT.refused, 'state_not_sound', cause.message);
    }
  });
}

const MOVE = [
  option('--from <place>', 'place of the state: lmdb:<folder>, or the URL of a database', {
    required: true,
  }),
  option('--to <place>', 'new place, in the same form, without a state', { required: true }),
  DATA_DIR,
  option('--dry-run', 'check the state, and show what would be moved and how long it would take'),
  option('--yes', 'move without asking; required when not on a terminal'),
] as const;

type MoveOptions = OptionsIn<typeof MOVE> & OutputOptions;

function addMoveCommand(store: Command): void {
  define(store, 'move', {
    about: 'move the state between a data folder and a database while nobody serves it',
    options: MOVE,
    notes: 'The same command, repeated, finishes a move that was interrupted.',
    examples: [
      'mesh-na store move --from lmdb:./mesh-data --to postgresql://mesh@db/mesh --dry-run',
      'mesh-na store move --from lmdb:./mesh-data --to postgresql://mesh@db/mesh',
    ],
    run: runMove,
  });
}

async function runMove({ yes = false, ...options }: MoveOptions): Promise<void> {
  const { from, to, dataDir, dryRun = false } = options;
  if (!dryRun && !yes) {
    const shown = `The state moves from ${from} to ${to}. Nobody can serve it meanwhile, and the state in ${from} can never be opened again.`;
    await assertConfirmed([shown], CONFIRMATION);
  }
  await onState(async () => {
    const { verifySignature: verify } = await import('../../base/crypto/ed25519.ts');
    const { checkMove, moveState } = await import('../../maintenance/move/move.ts');
    const source = await placeOf(from, dataDir);
    if (dryRun) return printEstimate(await checkMove(source, verify, systemRuntime), options);
    const moved = await moveState({
      from: source,
      to: await placeOf(to, dataDir),
      verify,
      runtime: systemRuntime,
      onStep: printStep,
    });
    printMoved(moved, options);
  });
}

const CONFIRMATION = {
  question: 'Move it?',
  otherwise:
    'The move closes the old place for good: add --yes, or use --dry-run to see what would be moved',
  declined: 'Nothing was moved',
};

function printEstimate({ expectedMs, ...moved }: Estimate, options: MoveOptions): void {
  const { from, to } = options;
  const { revision } = moved.facts;
  const lines = [
    `To be moved: ${contentsText(moved)}`,
    `Nobody could serve the state for about ${inSeconds(expectedMs)}.`,
    ...filesToBring(options),
  ];
  const result = { from, to, moved: false, revision, tables: moved.tables };
  printResult(options, { ...result, expected_ms: Math.round(expectedMs) }, lines);
}

function printMoved(moved: Moved, options: MoveOptions): void {
  const { from, to } = options;
  const { revision } = moved.facts;
  const lines = [
    `Moved: ${contentsText(moved)}`,
    'Every row arrived, and the old state can no longer be opened.',
    ...filesToBring(options),
  ];
  printResult(options, { from, to, moved: true, revision, tables: moved.tables }, lines);
}

function contentsText({ facts, tables }: Moved): string {
  return `revision ${facts.revision}, rows: ${countsText(rowCounts(tables))}`;
}

/** Lists the files to copy separately, because a move transfers only the state. */
function filesToBring({ to, dataDir }: Pick<MoveOptions, 'to' | 'dataDir'>): string[] {
  const folder = FOLDER.exec(to)?.[1];
  const needed = [FILES.genesis, FILES.config, FILES.naKey];
  const missing = needed.filter((name) => folder === undefined || !existsSync(join(folder, name)));
  if (missing.length === 0) return [];
  const place = folder ?? 'the data folder of each instance elsewhere';
  return [
    `Serving it requires the same ${missing.join(', ')}: copy them from ${dataDir} to ${place}.`,
  ];
}

const STEPS: { readonly [name in MoveStep['name']]: string } = {
  copied: 'Copied every row',
  compared: 'Read both places, which have the same state',
  published: 'Published the new place',
};

function printStep({ name, took }: MoveStep): void {
  printNote(`${STEPS[name]}, in ${inSeconds(took)}`);
}

function inSeconds(milliseconds: number): string {
  return `${(milliseconds / 1000).toFixed(2)} s`;
}

const FOLDER = /^lmdb:(.+)$/;

/** `dataDir` is the folder of the keys, which is marked as in use if the state is in a database. */
export async function placeOf(text: string, dataDir: string): Promise<Place> {
  const folder = FOLDER.exec(text)?.[1];
  return folder === undefined ? databasePlace(text, dataDir) : folderPlace(text, folder);
}

async function folderPlace(shown: string, folder: string): Promise<Place> {
  const { openLmdbSource } = await import('../../store/lmdb/source.ts');
  const { holdFolder, openLmdbReceiver } = await import('../../store/lmdb/receiver.ts');
  return {
    shown,
    openSource: () => openLmdbSource(folder),
    isServable: async () => existsSync(join(folder, 'state')),
    hold: async () => holdFolder(folder),
    receive: async () => openLmdbReceiver(folder),
  };
}

async function databasePlace(url: string, dataDir: string): Promise<Place> {
  const address = await storeAddress(url);
  const { moverOptions } = await import('../../store/open.ts');
  const { openPostgresqlSource } = await import('../../store/postgresql/source.ts');
  const { holdDatabase, isServable, openPostgresqlReceiver } = await import(
    '../../store/postgresql/receiver.ts'
  );
  const mover = moverOptions(systemRuntime);
  return {
    shown: `postgresql://${address.map(({ shown }) => shown).join(',')}`,
    openSource: () => openPostgresqlSource(address),
    isServable: () => isServable(address),
    hold: () => holdDatabase({ ...mover, address }),
    receive: () => openPostgresqlReceiver({ ...mover, address, dataDir }),
  };
}
