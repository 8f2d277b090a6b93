/** Moves a large state from a data folder to PostgreSQL while nobody serves it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemRuntime } from '../src/base/runtime.ts';
import type { GenesisBlock } from '../src/protocol/records/genesis.ts';
import { openLmdbStore } from '../src/store/lmdb/store.ts';
import { networkOf } from '../src/store/network-identity.ts';
import { parseStoreAddress } from '../src/store/postgresql/address.ts';
import { migrateDatabase } from '../src/store/postgresql/status.ts';
import type { Store } from '../src/store/store.ts';
import { startCluster } from '../test/support/postgresql.ts';
import { scratchFolder } from '../test/support/scratch.ts';
import { ROOT } from './children.ts';
import type { Settings } from './contest.ts';
import type { Load } from './load.ts';
import type { Report } from './report.ts';
import { seed } from './seed.ts';

export async function benchStoreMove(_load: Load, settings: Settings): Promise<Report> {
  const { seeded: nodes, dataDir, progress } = settings;
  const scratch = scratchFolder('mesh-na-move-');
  const state = join(scratch.path, 'data');
  await using cluster = await startCluster({
    settings: { shared_buffers: '256MB', max_wal_size: '4GB' },
    below: tmpdir(),
  });
  const store = await cluster.createDatabase();
  await migrateDatabase(parseStoreAddress(store, {}));
  try {
    if (dataDir !== null) cpSync(dataDir, state, { recursive: true });
    else {
      const counts = { nodes, revoked: 0, invites: 0, agents: 0 };
      await seed(state, counts, progress, openOwned);
    }
    const { expected_ms: expected } = await runMove(state, store, ['--dry-run'], progress);
    const { rows, took } = await runMove(state, store, ['--yes'], progress);
    return {
      benchmark: 'store-move',
      about: `${rows} rows move from LMDB to PostgreSQL`,
      lines: [],
      comparisons: [],
      notes: [
        `the move took ${(took / 1000).toFixed(1)} s; its dry run had expected ${(Number(expected) / 1000).toFixed(1)} s`,
        'the digests of all tables are the same in both places',
      ],
    };
  } finally {
    scratch.remove();
  }
}

/** Only a state that says whose it is can be moved. */
function openOwned(dataDir: string): Store {
  const genesis = JSON.parse(readFileSync(join(dataDir, 'genesis.json'), 'utf8')) as GenesisBlock;
  return openLmdbStore(dataDir, networkOf(genesis));
}

async function runMove(
  state: string,
  store: string,
  options: readonly string[],
  progress: Settings['progress'],
) {
  const began = systemRuntime.elapsed();
  const places = ['--from', `lmdb:${state}`, '--to', store, '--data-dir', state];
  const args = ['dist/src/main.js', 'store', 'move', ...places, '--json', ...options];
  const child = spawn(process.execPath, args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    for (const line of text.trimEnd().split('\n')) progress(`store-move: ${line}`);
  });
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`The move ended with ${String(code)}`);
  const { tables, expected_ms } = JSON.parse(output) as {
    readonly tables: { readonly [table: string]: { readonly rows: number } };
    readonly expected_ms?: number;
  };
  const rows = Object.values(tables).reduce((sum, table) => sum + table.rows, 0);
  return { rows, expected_ms, took: systemRuntime.elapsed() - began };
}
