/**
 * Ensures that only one process at a time holds a data directory, with a file lock that the system releases no matter
 * how the process ends. The lock belongs to the open file, not to a process id, so it also works between containers.
 */
import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  openSync,
  readFileSync,
  readSync,
  writeSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { hostname } from 'node:os';
import { join } from 'node:path';

const { O_APPEND, O_CREAT, O_NOFOLLOW, O_RDWR } = constants;

const require = createRequire(import.meta.url);

/**
 * Locks on files and parts of them, which the system releases no matter how their process ends. Loaded on first use:
 * commands that lock nothing start without native code.
 */
export function fileLocks(): typeof import('fs-native-extensions') {
  return require('fs-native-extensions');
}

export interface FolderLock {
  /** Any call but the first has no effect. */
  release(): void;
}

export const LOCK_FILE = 'mesh-na.lock';

/** Throws a one-sentence error if another process holds the folder. */
export function lockFolder(folder: string): FolderLock {
  return lockFile(
    join(folder, LOCK_FILE),
    (holder) =>
      `The data directory is in use by another process${holder}; stop that one, or name another folder than ${folder} by --data-dir`,
  );
}

/** `inUse` creates the message if another process holds the file; its argument names the holder in parentheses. */
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
    if (!isLock(file)) throw new Error(notALock(path));
    ftruncateSync(file);
    writeSync(file, `${process.pid} ${hostname()}\n`, 0);
  } catch (cause) {
    closeSync(file);
    throw 'code' in (cause as Error) ? notLocked(path, cause) : cause;
  }
  let isHeld = true;
  return {
    release() {
      if (isHeld) closeSync(file);
      isHeld = false;
    },
  };
}

function openLockFile(path: string): number {
  try {
    return openSync(path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW, 0o600);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ELOOP') throw new Error(notALock(path));
    throw notLocked(path, cause);
  }
}

const LONGEST_HOLDER = 400;

/** Others may be able to write to the folder, so foreign files are neither followed nor truncated. */
function isLock(file: number): boolean {
  const start = Buffer.alloc(LONGEST_HOLDER);
  const text = start.toString('latin1', 0, readSync(file, start, 0, LONGEST_HOLDER, 0));
  // A power failure may leave any part of the text, or zeros.
  return fstatSync(file).size < LONGEST_HOLDER && /^(?:\0*|\d+(?: \S*\n?)?)$/.test(text);
}

function notALock(path: string): string {
  return `${path} is not a lock of this program, and stays as it is: move it away`;
}

function notLocked(path: string, cause: unknown): Error {
  const { code } = cause as NodeJS.ErrnoException;
  const cure = code === 'EACCES' ? '; let the user of this process write there' : '';
  return new Error(
    `The data directory cannot be locked: ${path} cannot be written (${code})${cure}`,
  );
}

/** The holder of a lock. A process id means little without the machine or container it belongs to. */
interface LockHolder {
  readonly pid: number;
  readonly host: string;
}

/** Null if the file does not name the holder. */
function readHolder(path: string): LockHolder | null {
  const match = /^(\d+) (\S+)\n$/.exec(readFileSync(path, 'latin1'));
  return match === null ? null : { pid: Number(match[1]), host: String(match[2]) };
}
