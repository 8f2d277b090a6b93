/**
 * Only one process at a time holds a data directory: by a lock on a file in it, which the system releases
 * when the process ends, however it ends. The lock belongs to the open file, not to a process id, so it
 * also works between containers.
 */
import { closeSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { fileLocks } from './file-locks.ts';

export interface FolderLock {
  release(): void;
}

export const LOCK_FILE = 'mesh-na.lock';

/** Throws one clear sentence when another process holds the folder. */
export function lockFolder(folder: string): FolderLock {
  return lockFile(
    join(folder, LOCK_FILE),
    (holder) =>
      `The data directory is in use by another process${holder}; stop that one, or name another folder than ${folder} by --data-dir`,
  );
}

/** Null when another process holds the folder. */
export function tryLockFolder(folder: string): FolderLock | null {
  return tryLockFile(join(folder, LOCK_FILE));
}

/** `inUse` is the sentence for when another process holds the file, whose holder is named in parentheses. */
export function lockFile(path: string, inUse: (holder: string) => string): FolderLock {
  const lock = tryLockFile(path);
  if (lock !== null) return lock;
  const holder = readHolder(path);
  throw new Error(inUse(holder === null ? '' : ` (pid ${holder.pid} on ${holder.host})`));
}

function tryLockFile(path: string): FolderLock | null {
  const file = openLockFile(path);
  if (!fileLocks().tryLock(file)) {
    closeSync(file);
    return null;
  }
  try {
    ftruncateSync(file);
    writeSync(file, `${process.pid} ${hostname()}\n`, 0);
  } catch (cause) {
    closeSync(file);
    throw notLocked(path, cause);
  }
  return { release: () => closeSync(file) };
}

function openLockFile(path: string): number {
  try {
    return openSync(path, 'a+', 0o600);
  } catch (cause) {
    throw notLocked(path, cause);
  }
}

function notLocked(path: string, cause: unknown): Error {
  const { code } = cause as NodeJS.ErrnoException;
  const cure = code === 'EACCES' ? '; let the user of this process write there' : '';
  return new Error(
    `The data directory cannot be locked: ${path} cannot be written (${code})${cure}`,
  );
}

/** Who holds a lock, as it calls itself: a process id means little without the machine, or the container, it belongs to. */
export interface LockHolder {
  readonly pid: number;
  readonly host: string;
}

/** Null when the file does not say. */
export function readHolder(path: string): LockHolder | null {
  const match = /^(\d+) (\S+)\n$/.exec(readFileSync(path, 'latin1'));
  return match === null ? null : { pid: Number(match[1]), host: String(match[2]) };
}
