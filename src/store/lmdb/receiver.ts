/**
 * Fills a data folder that has no state, either at once or by a move while the state is served elsewhere. The database
 * is created in a folder next to its final place, and one rename puts it there when it is complete and on disk.
 */
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { RootDatabase } from 'lmdb';
import { syncFolder } from '../../base/durable-file.ts';
import { copyDifference } from '../move/difference.ts';
import { assertArrived, lastChanges } from '../move/marks.ts';
import type { StateReceiver, StateTarget } from '../stream/ports.ts';
import { targetOf } from '../stream/target.ts';
import type { TableChange } from '../tables.ts';
import { markInUse } from '../usage-mark.ts';
import { ARRIVING, arrivalIn, writeArrival } from './arrival.ts';
import { type FolderLock, lockFolder } from './folder-lock.ts';
import { ownerRow, SCHEMA_VERSION } from './ownership.ts';
import { lmdbTables, type OpenTables, openEnvironment, openTables } from './tables.ts';

const STATE = 'state';
const STAGING = '.import';
const FIRST_OWNER = 1;

/**
 * A crash leaves either no state or the complete state. Throws a one-sentence error if the folder already has state.
 */
export function openLmdbTarget(dataDir: string): StateTarget {
  return inFolderWithoutState(dataDir, (lock) => {
    assertArrived(arrivalIn(dataDir), dataDir);
    const staged = stagedDatabase(dataDir, STAGING, lock);
    staged.empty();
    const tables = lmdbTables(staged.open().tables);
    return targetOf({
      tables,
      async finish({ isClosed, network }) {
        await tables.write([SCHEMA, ownerChange(isClosed)]);
        await staged.putInPlace();
        markInUse(dataDir, network);
        staged.unlock();
      },
      abandon: () => staged.remove(),
    });
  });
}

/** Throws a one-sentence error if the folder already has state or is in use. */
export function openLmdbReceiver(dataDir: string): StateReceiver {
  return inFolderWithoutState(dataDir, (lock) => {
    const staged = stagedDatabase(dataDir, ARRIVING, lock);
    let arrival = arrivalIn(dataDir);
    return {
      get arrival() {
        return arrival;
      },
      async begin(begun) {
        await staged.close();
        staged.empty();
        // Prevents a new network from being started with these keys, even if the move fails.
        markInUse(dataDir, begun.network);
        writeArrival(dataDir, begun);
        arrival = begun;
        await lmdbTables(staged.open().tables).write([SCHEMA]);
      },
      async take(reading) {
        const { env, tables } = staged.open();
        env.resetReadTxn();
        const transaction = env.useReadTransaction();
        try {
          return await copyDifference(reading, lmdbTables(tables, transaction));
        } finally {
          transaction.done();
        }
      },
      // A process that waits for a folder does not read it before the state has arrived.
      unready: async () => 0,
      complete: (last, isClosed) =>
        lmdbTables(staged.open().tables).write([...lastChanges(last), ownerChange(isClosed)]),
      async publish() {
        await staged.putInPlace();
        staged.unlock();
      },
      async leave() {
        await staged.close();
        staged.unlock();
      },
      abandon: () => staged.remove(),
    };
  });
}

function inFolderWithoutState<T>(dataDir: string, work: (lock: FolderLock) => T): T {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const lock = lockFolder(dataDir);
  try {
    if (existsSync(join(dataDir, STATE))) throw new Error(`${dataDir} holds state already`);
    return work(lock);
  } catch (cause) {
    lock.release();
    throw cause;
  }
}

const SCHEMA: TableChange = {
  table: 'meta',
  put: [{ key: 'schema', version: 0, row: Buffer.of(SCHEMA_VERSION) }],
};

function ownerChange(isClosed: boolean): TableChange {
  const row = ownerRow(isClosed ? 'closed' : 'open', FIRST_OWNER);
  return { table: 'meta', put: [{ key: 'owner', version: FIRST_OWNER, row }] };
}

/** A database in a folder with this name, to be used while the data folder is locked. */
function stagedDatabase(dataDir: string, name: string, lock: FolderLock) {
  const folder = join(dataDir, name);
  let opened: { readonly env: RootDatabase; readonly tables: OpenTables } | null = null;
  let isLocked = true;

  function unlock(): void {
    if (isLocked) lock.release();
    isLocked = false;
  }

  async function close(): Promise<void> {
    const { env } = opened ?? {};
    opened = null;
    await env?.close();
  }

  return {
    /** Deletes and recreates the folder. */
    empty(): void {
      rmSync(folder, { recursive: true, force: true });
      mkdirSync(folder, { mode: 0o700 });
    },
    open() {
      if (opened !== null) return opened;
      const env = openEnvironment(folder, false);
      opened = { env, tables: openTables(env) };
      return opened;
    },
    close,
    async putInPlace(): Promise<void> {
      await close();
      renameSync(join(folder, STATE), join(dataDir, STATE));
      syncFolder(dataDir);
      rmSync(folder, { recursive: true, force: true });
    },
    unlock,
    async remove(): Promise<void> {
      await close();
      rmSync(folder, { recursive: true, force: true });
      unlock();
    },
  };
}
