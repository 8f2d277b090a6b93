/** A network of a million nodes: its start, heartbeats in it, and its move to PostgreSQL. */
import { execFile } from 'node:child_process';
import { cpSync, symlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { systemRuntime } from '../src/base/runtime.ts';
import { scratchFolder } from '../test/support/scratch.ts';
import { contest, type Settings } from './contest.ts';
import { memoryOf } from './cpu.ts';
import { enrolledFleet } from './fleet.ts';
import type { Report } from './report.ts';
import { largeNetwork, MANY_NODES, seed } from './seed.ts';
import { ROOT, startAuthority, startDatabase } from './servers.ts';

const FLEET = 1000;
const CONNECTIONS = 64;
const TARGET = 0.9;

/** Time to ready, memory, and heartbeats, compared to an authority without other nodes. */
export async function benchScale(settings: Settings): Promise<Report> {
  let filledAt = 0;
  await using large = await startAuthority(settings, {
    async fill(folder) {
      await fillFolder(folder, settings);
      filledAt = systemRuntime.elapsed();
    },
  });
  const notes = [`ready after ${secondsSince(filledAt)} s`, memoryNote(large.pid, 'when ready')];
  await using small = await startAuthority(settings);
  const { connections = CONNECTIONS } = settings;
  const plan = { nodes: FLEET, connections };
  const crowded = await enrolledFleet(large, plan);
  const alone = await enrolledFleet(small, plan);
  const about = `heartbeats of ${FLEET} nodes on ${connections} connections, closed loop`;
  const report = await contest(settings, 'scale', about, [
    { name: 'large network', run: crowded.beat, against: { [`${FLEET} nodes`]: TARGET } },
    { name: `${FLEET} nodes`, run: alone.beat },
  ]);
  return { ...report, notes: [...notes, memoryNote(large.pid, 'after the heartbeats')] };
}

function memoryNote(pid: number, when: string): string {
  const { resident, anonymous, files } = memoryOf(pid);
  return `memory ${when}: ${resident} MB resident, ${anonymous} MB of its own and ${files} MB of files`;
}

/** Moves the state from a data folder to PostgreSQL while nobody serves it. */
export async function benchStoreMove(settings: Settings): Promise<Report> {
  const scratch = scratchFolder('mesh-na-move-');
  const state = join(scratch.path, 'data');
  const { cluster, url } = await startDatabase();
  await using _ = cluster;
  if (settings.dataDir === undefined) await fillFolder(state, settings);
  else cpSync(settings.dataDir, state, { recursive: true });
  const places = ['--from', `lmdb:${state}`, '--to', url, '--data-dir', state];
  const move = async (how: string): Promise<Moved> => {
    const args = ['dist/src/main.js', 'store', 'move', ...places, '--json', how];
    const environment = { cwd: ROOT, env: { PATH: process.env.PATH } };
    const { stdout } = await promisify(execFile)(process.execPath, args, environment);
    return JSON.parse(stdout) as Moved;
  };
  const { expected_ms } = await move('--dry-run');
  const startedAt = systemRuntime.elapsed();
  const { tables } = await move('--yes');
  const took = secondsSince(startedAt);
  const rows = Object.values(tables).reduce((sum, table) => sum + table.rows, 0);
  scratch.remove();
  return {
    benchmark: 'store-move',
    about: `${rows} rows move from LMDB to PostgreSQL`,
    lines: [],
    comparisons: [],
    notes: [
      `the move took ${took} s; its dry run had expected ${(expected_ms / 1000).toFixed(1)} s`,
      'the digests of all tables are the same in both places',
    ],
  };
}

interface Moved {
  readonly tables: { readonly [table: string]: { readonly rows: number } };
  /** Only of a dry run. */
  readonly expected_ms: number;
}

/** The given folder of a large network, or a new one. */
async function fillFolder(
  folder: string,
  { nodes = MANY_NODES, dataDir, progress }: Settings,
): Promise<void> {
  if (dataDir !== undefined) {
    symlinkSync(resolve(dataDir), folder);
    return;
  }
  progress(`writing a network of ${nodes} nodes`);
  await seed(folder, largeNetwork(nodes));
}

function secondsSince(start: number): string {
  return ((systemRuntime.elapsed() - start) / 1000).toFixed(1);
}
