/**
 * Writes a whole state to a data folder that has none. The database is created in a folder next to its place and
 * moved there once it is complete and on disk: after a crash there is either no state or all of it.
 */
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { assertArrived } from '../move/arrival.ts';
import type { StateTarget } from '../stream/ports.ts';
import { targetOf } from '../stream/target.ts';
import { markInUse } from '../usage-mark.ts';
import { arrivalIn } from './arrival.ts';
import { openEnvironment, openTables } from './environment.ts';
import { lockFolder } from './folder-lock.ts';
import { ownerRow, SCHEMA_VERSION } from './ownership.ts';
import { lmdbWriter } from './stored-rows.ts';

const STATE = 'state';
const STAGING = '.import';
const FIRST_OWNER = 1;

/** Throws one clear sentence when the folder has state. */
export function openLmdbTarget(dataDir: string): StateTarget {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const lock = lockFolder(dataDir);
  const staging = join(dataDir, STAGING);
  try {
    assertArrived(arrivalIn(dataDir), dataDir);
    if (existsSync(join(dataDir, STATE))) throw new Error(`${dataDir} holds state already`);
    rmSync(staging, { recursive: true, force: true });
    mkdirSync(staging, { mode: 0o700 });
    return targetIn(dataDir, staging, () => lock.release());
  } catch (cause) {
    lock.release();
    throw cause;
  }
}

function targetIn(dataDir: string, staging: string, unlock: () => void): StateTarget {
  const env = openEnvironment(staging, false);
  const tables = openTables(env);
  let isOpen = true;

  async function end(): Promise<void> {
    if (!isOpen) return;
    isOpen = false;
    await env.close();
  }

  return targetOf({
    put: lmdbWriter(env, tables).put,
    async finish(rows, { isClosed, network }) {
      const { meta } = tables;
      env.transactionSync(() => {
        meta.putSync('schema', Buffer.of(SCHEMA_VERSION));
        for (const [key, row] of rows) meta.putSync(key, row);
        const state = isClosed ? 'closed' : 'open';
        meta.putSync('owner', ownerRow(state, FIRST_OWNER), FIRST_OWNER);
      });
      await end();
      renameSync(join(staging, STATE), join(dataDir, STATE));
      rmSync(staging, { recursive: true, force: true });
      markInUse(dataDir, network);
      unlock();
    },
    async abandon() {
      await end();
      rmSync(staging, { recursive: true, force: true });
      unlock();
    },
  });
}
