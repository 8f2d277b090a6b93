/**
 * A data folder into which a state is moved. The database is made in a folder beside its place, and takes its place by
 * one rename.
 */
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { RootDatabase } from 'lmdb';
import type { RowKey } from '../rows.ts';
import { assertTotal, decodeTotals } from '../totals.ts';
import type {
  Arrival,
  LastEntry,
  RowChange,
  StateReceiver,
  TrailReading,
  TrailTable,
} from '../trail/ports.ts';
import { TRAIL_TABLES } from '../trail/ports.ts';
import { markInUse } from '../usage-mark.ts';
import { ARRIVING, arrivalIn, syncFolder, writeArrival } from './arrival.ts';
import { entriesOf, openEnvironment, openTables, type Tables } from './environment.ts';
import { type FolderLock, lockFolder } from './folder-lock.ts';
import { ownerRow, SCHEMA_VERSION } from './ownership.ts';
import { openLmdbSource } from './source.ts';

const STATE = 'state';
const FIRST_OWNER = 1;

/** Throws one clear sentence when the folder has state, or is in use. */
export function openLmdbReceiver(dataDir: string): StateReceiver {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const lock = lockFolder(dataDir);
  try {
    if (existsSync(join(dataDir, STATE))) throw new Error(`${dataDir} holds state already`);
    return receiverIn(dataDir, lock, arrivalIn(dataDir));
  } catch (cause) {
    lock.release();
    throw cause;
  }
}

interface Opened {
  readonly env: RootDatabase;
  readonly tables: Tables;
}

function receiverIn(dataDir: string, lock: FolderLock, found: Arrival | null): StateReceiver {
  const folder = join(dataDir, ARRIVING);
  let arrival = found;
  let opened: Opened | null = null;
  let isLocked = true;

  function unlock(): void {
    if (isLocked) lock.release();
    isLocked = false;
  }

  function database(): Opened {
    if (opened !== null) return opened;
    const env = openEnvironment(folder, false);
    opened = { env, tables: openTables(env) };
    return opened;
  }

  async function closeDatabase(): Promise<void> {
    const { env } = opened ?? {};
    opened = null;
    await env?.close();
  }

  function putMeta(rows: Iterable<readonly [string, Buffer]>): void {
    const { env, tables } = database();
    env.transactionSync(() => {
      for (const [key, row] of rows) tables.meta.putSync(key, row);
    });
  }

  async function takeAll(reading: TrailReading): Promise<number> {
    const { env, tables } = database();
    let rows = 0;
    for (const table of TRAIL_TABLES) {
      for await (const changes of reading.changes(table)) {
        rows += changes.length;
        env.transactionSync(() => apply(tables, table, changes));
      }
    }
    putMeta(reading.meta);
    return rows;
  }

  return {
    get arrival() {
      return arrival;
    },
    async begin({ from, network }) {
      await closeDatabase();
      rmSync(folder, { recursive: true, force: true });
      mkdirSync(folder, { mode: 0o700 });
      // Nobody starts a new network under the keys of this one, whatever becomes of the move.
      markInUse(dataDir, network);
      arrival = { from, network, isComplete: false };
      writeArrival(dataDir, arrival);
      putMeta([['schema', Buffer.of(SCHEMA_VERSION)]]);
    },
    take: takeAll,
    // Whoever waits beside a folder opens nothing of it before the state has arrived.
    unready: async () => 0,
    openSource: async () => openLmdbSource(folder),
    async complete({ number, row, totals }: LastEntry) {
      if (arrival === null) throw new Error('Nothing is being moved here');
      const { env, tables } = database();
      const { subjects, nonceRows } = decodeTotals(totals);
      assertTotal('subjects', entriesOf(tables, 'subjects'), subjects);
      assertTotal('nonces', entriesOf(tables, 'nonces'), nonceRows);
      env.transactionSync(() => {
        tables.audit.putSync(number, row);
        tables.meta.putSync('totals', totals);
      });
      arrival = { ...arrival, isComplete: true };
      writeArrival(dataDir, arrival);
    },
    async publish(isClosed) {
      const { env, tables } = database();
      const state = isClosed ? 'closed' : 'open';
      env.transactionSync(() => {
        tables.meta.putSync('owner', ownerRow(state, FIRST_OWNER), FIRST_OWNER);
      });
      await closeDatabase();
      renameSync(join(folder, STATE), join(dataDir, STATE));
      syncFolder(dataDir);
      rmSync(folder, { recursive: true, force: true });
      unlock();
    },
    async leave() {
      await closeDatabase();
      unlock();
    },
    async abandon() {
      await closeDatabase();
      rmSync(folder, { recursive: true, force: true });
      unlock();
    },
  };
}

function apply(tables: Tables, table: TrailTable, changes: readonly RowChange[]): void {
  const rows = tables[table] as { putSync: Put; removeSync(key: RowKey): unknown };
  for (const { key, version, row } of changes) {
    if (row === null) rows.removeSync(key);
    else if (table === 'subjects') rows.putSync(key, row, version);
    else rows.putSync(key, row);
  }
}

type Put = (key: RowKey, row: Buffer, version?: number) => unknown;
