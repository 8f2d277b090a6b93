/**
 * A data folder into which a state is moved. The database is created in a folder next to its place, and takes its place by
 * one rename.
 */
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { RootDatabase } from 'lmdb';
import { copyDifference, movedMeta } from '../move/difference.ts';
import type { Arrival, StateReading, StateReceiver } from '../move/ports.ts';
import { decodeTotals } from '../totals.ts';
import { markInUse } from '../usage-mark.ts';
import { ARRIVING, arrivalIn, syncFolder, writeArrival } from './arrival.ts';
import { openEnvironment, openTables, type Tables } from './environment.ts';
import { type FolderLock, lockFolder } from './folder-lock.ts';
import { ownerRow, SCHEMA_VERSION } from './ownership.ts';
import { lmdbRows, lmdbWriter } from './stored-rows.ts';

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

  async function take(reading: StateReading): Promise<number> {
    const { env, tables } = database();
    const { auditEntries } = decodeTotals(tables.meta.get('totals'));
    env.resetReadTxn();
    const transaction = env.useReadTransaction();
    try {
      const place = { ...lmdbRows(tables, transaction), ...lmdbWriter(env, tables), auditEntries };
      const rows = await copyDifference(reading, place);
      putMeta(movedMeta(reading));
      return rows;
    } finally {
      transaction.done();
    }
  }

  return {
    get arrival() {
      return arrival;
    },
    async begin(begun) {
      await closeDatabase();
      rmSync(folder, { recursive: true, force: true });
      mkdirSync(folder, { mode: 0o700 });
      // Nobody starts a new network under the keys of this one, whatever becomes of the move.
      markInUse(dataDir, begun.network);
      writeArrival(dataDir, begun);
      arrival = begun;
      putMeta([['schema', Buffer.of(SCHEMA_VERSION)]]);
    },
    take,
    // A process that waits for a folder opens nothing of it before the state has arrived.
    unready: async () => 0,
    async complete({ number, row, totals }, isClosed) {
      const { env, tables } = database();
      env.transactionSync(() => {
        tables.audit.putSync(number, row);
        tables.meta.putSync('totals', totals);
        const state = isClosed ? 'closed' : 'open';
        tables.meta.putSync('owner', ownerRow(state, FIRST_OWNER), FIRST_OWNER);
      });
    },
    async publish() {
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
