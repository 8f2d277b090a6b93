/** Holds a data folder while its state is moved elsewhere, and retires that state. */
import { join } from 'node:path';
import type { RootDatabase } from 'lmdb';
import { metaValue } from '../meta-rows.ts';
import { retirement } from '../move/marks.ts';
import type { HeldState, LastEntry } from '../stream/ports.ts';
import { LOCK_FILE, lockFile } from './folder-lock.ts';
import { assertDatabase, checkForReading } from './folder-state.ts';
import { whileNobodyCommits } from './openings.ts';
import { assertSchema, isClosed } from './ownership.ts';
import { openEnvironment, openMeta, openTables, writeAtOnce } from './tables.ts';

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
