/** Retires the state in a data folder after it was moved elsewhere. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { RootDatabase } from 'lmdb';
import { metaValue } from '../meta-rows.ts';
import { retirement } from '../move/marks.ts';
import type { HeldState, LastEntry } from '../stream/ports.ts';
import { tryLockFolder } from './folder-lock.ts';
import { DATABASE_FILE } from './folder-state.ts';
import { whileNobodyCommits } from './openings.ts';
import { isClosed } from './ownership.ts';
import { openEnvironment, openMeta, openTables, writeAtOnce } from './tables.ts';

/** Null while another process holds the folder. */
export function holdFolder(dataDir: string): HeldState | null {
  const lock = tryLockFolder(dataDir);
  if (lock === null) return null;
  let isHeld = true;
  let isClean: boolean;
  try {
    isClean = onDatabase(dataDir, (env) => isClosed(openTables(env)));
  } catch (cause) {
    lock.release();
    throw cause;
  }

  async function release(): Promise<void> {
    if (isHeld) lock?.release();
    isHeld = false;
  }

  return {
    wasClosed: isClean,
    async retire(last, successor) {
      await retireFolder(dataDir, last, successor);
      await release();
    },
    release,
  };
}

/** The place that the state was moved to; null if it was not moved. */
export function movedFrom(dataDir: string): string | null {
  if (!existsSync(join(dataDir, DATABASE_FILE))) return null;
  return onDatabase(dataDir, (env) => metaValue(openMeta(env), 'moved'));
}

function onDatabase<T>(dataDir: string, read: (env: RootDatabase) => T): T {
  const env = openEnvironment(dataDir, true);
  try {
    return read(env);
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
