/**
 * One process at a time holds a data directory: by a lock on a file in it, which the system gives back when
 * the process ends, however it ends. The lock belongs to the open file, not to a process id, so that it
 * holds between containers as well.
 */
import { closeSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { tryLock } from 'fs-native-extensions';

export interface FolderLock {
  release(): void;
}

const LOCK_FILE = 'mesh-na.lock';

/** Throws one clear sentence when another process holds the folder. */
export function lockFolder(folder: string): FolderLock {
  const path = join(folder, LOCK_FILE);
  const file = openLockFile(path);
  if (!tryLock(file)) {
    closeSync(file);
    throw new Error(`The data directory is in use by another process${holderIn(path)}`);
  }
  ftruncateSync(file);
  writeSync(file, `${process.pid} ${hostname()}\n`, 0);
  return { release: () => closeSync(file) };
}

function openLockFile(path: string): number {
  try {
    return openSync(path, 'a+', 0o600);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new Error(`The data directory cannot be locked: ${path} cannot be written (${code})`);
  }
}

/** Process ids say little without the machine, or the container, that they belong to. */
function holderIn(path: string): string {
  const match = /^(\d+) (\S+)\n$/.exec(readFileSync(path, 'latin1'));
  return match === null ? '' : ` (pid ${match[1]} on ${match[2]})`;
}
