/** `mesh-na store`: manages the state, in a data folder or in a database. */

import type { Command } from 'commander';
import { counted } from '../../base/counts.ts';
import type { StatusOfLease, StatusOfStandby, StoreStatus } from '../../store/postgresql/status.ts';
import { define } from '../kernel/command.ts';
import { EXIT, failure, usageFailure } from '../kernel/errors.ts';
import { asJson, type OutputOptions, printResult } from '../kernel/output.ts';
import { whileWaiting } from '../kernel/terminal.ts';
import { countsText, rowCounts } from './backup.ts';
import { addMoveCommand } from './move.ts';
import { databaseOf, onState, openSource, PLACE, type StatePlace } from './place.ts';

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
