/**
 * Fills a data folder that has no state, by a restore or a move. The database is created in a folder next to its final
 * place, and one rename puts it there when it is complete and on disk. Holds a data folder while its state is moved
 * elsewhere, and retires that state.
 */
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { RootDatabase } from 'lmdb';
import { syncFolder } from '../../base/durable-file.ts';
import { metaValue } from '../meta-rows.ts';
import { assertArrived, copyRows, lastChanges, retirement } from '../move/marks.ts';
import type { HeldState, LastEntry, StateReceiver, StateTarget } from '../stream/ports.ts';
import { targetOf } from '../stream/target.ts';
import type { TableChange } from '../tables.ts';
import { markInUse } from '../usage-mark.ts';
import { type FolderLock, LOCK_FILE, lockFile, lockFolder } from './folder-lock.ts';
import { ARRIVING, assertDatabase, checkForReading, isArriving } from './folder-state.ts';
import { whileNobodyCommits } from './openings.ts';
import { assertSchema, isClosed, ownerRow, SCHEMA_VERSION } from './ownership.ts';
import { openLmdbSource } from './source.ts';
import {
  lmdbTables,
  type OpenTables,
  openEnvironment,
  openMeta,
  openTables,
  writeAtOnce,
} from './tables.ts';

const STATE = 'state';
const STAGING = '.import';
const FIRST_OWNER = 1;

/**
 * A crash leaves either no state or the complete state. Throws a one-sentence error if the folder already has state.
 */
export function openLmdbTarget(dataDir: string): StateTarget {
  return inFolderWithoutState(dataDir, (lock) => {
    assertArrived(isArriving(dataDir), dataDir);
    const staged = stagedDatabase(dataDir, STAGING);
    staged.empty();
    const tables = lmdbTables(staged.open().tables);
    return targetOf({
      tables,
      async finish({ isClosed, network }) {
        await tables.write([SCHEMA, ownerChange(isClosed)]);
        await staged.close();
        staged.putInPlace();
        markInUse(dataDir, network);
        lock.release();
      },
      async abandon() {
        await staged.close();
        staged.remove();
        lock.release();
      },
    });
  });
}

/** Throws a one-sentence error if the folder already has state or is in use. */
export function openLmdbReceiver(dataDir: string): StateReceiver {
  return inFolderWithoutState(dataDir, (lock) => {
    const staged = stagedDatabase(dataDir, ARRIVING);
    return {
      async take(reading) {
        // Prevents a new network from being started with these keys, even if the move fails.
        markInUse(dataDir, reading.facts.network);
        staged.empty();
        const tables = lmdbTables(staged.open().tables);
        await tables.write([SCHEMA]);
        await copyRows(reading, tables);
        await staged.close();
      },
      taken: () => openLmdbSource(staged.folder),
      async complete(last, isClosed) {
        const tables = lmdbTables(staged.open().tables);
        await tables.write([...lastChanges(last), ownerChange(isClosed)]);
        await staged.close();
        staged.sync();
      },
      async publish() {
        staged.putInPlace();
        lock.release();
      },
      async leave() {
        await staged.close();
        lock.release();
      },
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
function stagedDatabase(dataDir: string, name: string) {
  const folder = join(dataDir, name);
  let opened: { readonly env: RootDatabase; readonly tables: OpenTables } | null = null;

  /** Makes the database and its folders survive a power failure; LMDB syncs only what is in its files. */
  function sync(): void {
    for (const path of [join(folder, STATE), folder, dataDir]) syncFolder(path);
  }

  return {
    folder,
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
    async close(): Promise<void> {
      const { env } = opened ?? {};
      opened = null;
      await env?.close();
    },
    sync,
    /** The database must be closed. */
    putInPlace(): void {
      sync();
      renameSync(join(folder, STATE), join(dataDir, STATE));
      syncFolder(dataDir);
      rmSync(folder, { recursive: true, force: true });
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** Throws a one-sentence error if there is no state, or if another process holds the folder. */
export function holdFolder(dataDir: string): HeldState {
  assertDatabase(dataDir);
  const lock = lockFile(
    join(dataDir, LOCK_FILE),
    (holder) => `The state in ${dataDir} is in use by another process${holder}: stop it first`,
  );
  try {
    checkForReading(dataDir);
    const { wasClosed, movedTo } = stateIn(dataDir);
    return {
      wasClosed,
      movedTo,
      retire: (last, successor) => retireFolder(dataDir, last, successor),
      release: async () => lock.release(),
    };
  } catch (cause) {
    lock.release();
    throw cause;
  }
}

function stateIn(dataDir: string): Pick<HeldState, 'wasClosed' | 'movedTo'> {
  const env: RootDatabase = openEnvironment(dataDir, true);
  try {
    // Check first, because other layouts have other tables.
    const meta = openMeta(env);
    assertSchema(meta.get('schema'), false);
    return { wasClosed: isClosed(openTables(env)), movedTo: metaValue(meta, 'moved') };
  } finally {
    void env.close();
  }
}

/** Keeps the owner's row, because the previous owner was the last process to serve the state. */
async function retireFolder(dataDir: string, last: LastEntry, successor: string): Promise<void> {
  const env = openEnvironment(dataDir, false);
  try {
    const opened = openTables(env);
    whileNobodyCommits(dataDir, () => writeAtOnce(opened, retirement(last, successor)));
  } finally {
    await env.close();
  }
}
