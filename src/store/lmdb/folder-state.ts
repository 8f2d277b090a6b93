/** Whether the files of the state in a data directory can be opened safely by LMDB. */
import { closeSync, existsSync, openSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { assertNeverUsed } from '../usage-mark.ts';
import { checkStructure, checkStructureInUse } from './structure.ts';

const DATABASE_FILE = 'state/data.mdb';
const DATABASE_LOCK_FILE = 'state/lock.mdb';

/** Throws one clear sentence when LMDB could not open the files safely. */
export function checkFiles(dataDir: string): void {
  const database = join(dataDir, DATABASE_FILE);
  if (!existsSync(database)) {
    assertNeverUsed(dataDir, foundInstead('missing'));
    return;
  }
  for (const name of [DATABASE_FILE, DATABASE_LOCK_FILE]) assertWritable(join(dataDir, name));
  if (statSync(database).size === 0) assertNeverUsed(dataDir, foundInstead('empty'));
  else checkStructure(database, 'end');
}

/**
 * For those who only read, also while a server is running on the files: whether the database could be
 * checked, which is false when it changed all the while. Throws as `checkFiles` does, also when there is none.
 */
export function checkForReading(dataDir: string): boolean {
  const database = join(dataDir, DATABASE_FILE);
  if (!existsSync(database) || statSync(database).size === 0) {
    throw new Error(`${dataDir} holds no state of an authority`);
  }
  return checkStructureInUse(database);
}

function foundInstead(found: 'missing' | 'empty'): string {
  return `${DATABASE_FILE} is ${found}; restore it from a backup`;
}

/** LMDB ends the process when it cannot write one of its files. */
function assertWritable(path: string): void {
  if (!existsSync(path)) return;
  try {
    closeSync(openSync(path, 'r+'));
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new Error(
      `The state in the data directory cannot be used: ${path} cannot be written (${code})`,
    );
  }
}
