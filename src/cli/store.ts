/** `mesh-na store`: manages the state, in a data folder or in a database. */
import type { Command } from 'commander';
import type { StatusOfFollower, StatusOfLease, StoreStatus } from '../store/postgresql/status.ts';
import { usageFailure } from './exit-codes.ts';
import { examples, jsonOption } from './options.ts';
import { type OutputOptions, printResult } from './output.ts';
import { addPlaceOptions, databaseOf, onState, type StatePlace } from './store-address.ts';
import { addDamageCommands } from './store-damage.ts';
import { addMoveCommand } from './store-move.ts';

interface StoreCommandOptions extends OutputOptions, StatePlace {}

export function addStoreCommands(program: Command): void {
  const store = program
    .command('store')
    .description('manage the state: migrate, inspect, move, verify or salvage it');
  addPlaceOptions(store.command('migrate'))
    .description('create the tables in a new database')
    .addOption(jsonOption())
    .addHelpText('after', examples(['mesh-na store migrate --store postgresql://mesh@db/mesh']))
    .action(migrate);
  addPlaceOptions(store.command('status'))
    .description(
      'say what is in the database, who writes to it, who is ready to, and how durable it is',
    )
    .addOption(jsonOption())
    .addHelpText('after', examples(['mesh-na store status --store postgresql://mesh@db/mesh']))
    .action(status);
  addMoveCommand(store);
  addDamageCommands(store);
}

async function migrate(options: StoreCommandOptions): Promise<void> {
  const { migrateDatabase } = await import('../store/postgresql/status.ts');
  const address = await namedDatabase(options);
  const { place, from, to } = await onState(() => migrateDatabase(address));
  const text =
    from === to
      ? `The tables at ${place} have schema version ${to} already.`
      : `The tables at ${place} have schema version ${to}.`;
  printResult(options, { place, from, to }, [text]);
}

async function status(options: StoreCommandOptions): Promise<void> {
  const { readStatus } = await import('../store/postgresql/status.ts');
  const address = await namedDatabase(options);
  const found = await onState(() => readStatus(address));
  const { place, schemaVersion, contents, durability } = found;
  const result = {
    place,
    schema_version: schemaVersion,
    network_name: contents?.networkName ?? null,
    revision: contents?.revision ?? null,
    rows: contents?.rows ?? null,
    lease: contents === null ? null : { ...contents.lease },
    followers: contents === null ? null : contents.followers.map((follower) => ({ ...follower })),
    durability: { ...durability },
  };
  printResult(options, result, statusText(found));
}

async function namedDatabase(options: StoreCommandOptions) {
  const address = await onState(() => databaseOf(options));
  if (address === null) throw usageFailure('Name the database by --store');
  return address;
}

function statusText({ place, schemaVersion, contents, durability }: StoreStatus): string[] {
  const text = [
    `Database: ${place}, PostgreSQL ${durability.server}`,
    `Schema version: ${schemaVersion === 0 ? 'no tables' : schemaVersion}`,
  ];
  if (contents !== null) {
    const { networkName, revision, rows, lease, followers } = contents;
    text.push(
      `Network: ${networkName ?? 'none yet'}`,
      `Revision: ${revision}`,
      `Rows: ${Object.entries(rows)
        .map(([table, count]) => `${table} ${count}`)
        .join(', ')}`,
      `Writer: ${writerText(lease)}`,
      ...followers.map((follower) => `Follower: ${followerText(follower)}`),
    );
  }
  return [...text, `Durability: ${durability.meaning}.`];
}

function writerText({
  holder,
  held,
  released,
  expires_at,
  link,
  epoch,
  remaining_seconds,
}: StatusOfLease): string {
  if (holder === null) return 'none yet';
  const linked = link === null ? '' : `, linked at ${link}`;
  if (held) {
    const lasts = (remaining_seconds ?? 0).toFixed(1);
    return `${holder}, holder ${epoch} of the lease, which lasts for ${lasts} s unless it is renewed${linked}`;
  }
  return released ? `none; ${holder} has stopped` : `none; ${holder} was lost at ${expires_at}`;
}

/** Followers look at the database four times a second. */
const SILENT_SECONDS = 5;

function followerText({ name, lag_revisions: lag, silent_seconds: silence }: StatusOfFollower) {
  const silent =
    silence === null || silence < SILENT_SECONDS
      ? ''
      : `, not heard of for ${Math.floor(silence)} s`;
  if (lag === null) return `${name}, has not read the state yet${silent}`;
  return lag === 0
    ? `${name}, up to date${silent}`
    : `${name}, ${lag} ${lag === 1 ? 'revision' : 'revisions'} behind${silent}`;
}
