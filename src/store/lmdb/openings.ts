/**
 * Keeps commits from running while another process opens the database. Opening an LMDB environment reads the number of
 * its last transaction from the file and then writes it to the shared lock file. A commit in between would be undone,
 * because the next transaction would begin from the state before it.
 *
 * Two bytes far beyond the possible end of the database file serve as locks. A process that is about to open the
 * database locks the first, so that a process that commits continuously lets it go first; a process that is opening or
 * committing locks the second. The system releases both when a process ends. LMDB itself locks only bytes of its lock
 * file.
 */
import { closeSync, openSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileLocks } from './folder-lock.ts';
import { DATABASE_FILE } from './folder-state.ts';

const TURN = 2 ** 40;
const ACCESS = TURN + 1;

const LOOK_MS = 1;
/** A commit takes a few milliseconds on a healthy disk. */
const MOST_LOOKS_OF_OPENING = 10_000;
/** Commits yield to a process that is about to open, but not for long, because it may be suspended. */
const MOST_LOOKS_OF_COMMIT = 1000;

/** The folders that this process commits to: LMDB opens a file only once in a process. */
const ownFolders = new Set<string>();

/**
 * Runs `work`, which opens the database of the folder or writes to it synchronously, while nobody commits. Blocks the
 * thread.
 */
export function whileNobodyCommits<T>(dataDir: string, work: () => T): T {
  if (ownFolders.has(resolve(dataDir))) return work();
  const file = openToLock(dataDir);
  if (file === null) return work();
  try {
    takeBlocking(file, TURN);
    takeBlocking(file, ACCESS);
    return work();
  } finally {
    closeSync(file);
  }
}

function takeBlocking(file: number, byte: number): void {
  for (let looks = 0; !fileLocks().tryLock(file, byte, 1); looks += 1) {
    if (looks === MOST_LOOKS_OF_OPENING) {
      throw new Error('The state cannot be opened now: another process is continuously using it');
    }
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOOK_MS);
  }
}

/** The commits of the process that owns the folder. */
export interface Commits {
  /** Runs a commit while nobody is opening the database, after all earlier commits. */
  run<T>(commit: () => Promise<T>): Promise<T>;
  /** Call when all commits have ended. */
  close(): void;
}

export function createCommits(dataDir: string): Commits {
  const file = openToLock(dataDir);
  return file === null
    ? { run: (commit) => commit(), close: () => undefined }
    : lockedCommits(resolve(dataDir), file);
}

function lockedCommits(folder: string, file: number): Commits {
  ownFolders.add(folder);
  let underWay = 0;
  /** The last waiting commit; null if there is none. */
  let last: Promise<void> | null = null;
  /** Set when a process that was about to open took too long, so that it no longer delays commits. */
  let isTurnIgnored = false;

  function isSomebodysTurn(): boolean {
    const { tryLock, unlock } = fileLocks();
    const isFree = tryLock(file, TURN, 1);
    if (isFree) {
      unlock(file, TURN, 1);
      isTurnIgnored = false;
    }
    return !isFree && !isTurnIgnored;
  }

  function isEntered(): boolean {
    if (isSomebodysTurn()) return false;
    if (underWay === 0 && !fileLocks().tryLock(file, ACCESS, 1)) return false;
    underWay += 1;
    return true;
  }

  function leave(): void {
    underWay -= 1;
    if (underWay === 0) fileLocks().unlock(file, ACCESS, 1);
  }

  async function enterAfter(earlier: Promise<void> | null): Promise<void> {
    await earlier;
    for (let looks = 0; !isEntered(); looks += 1) {
      if (looks === MOST_LOOKS_OF_COMMIT) isTurnIgnored = true;
      await pause(LOOK_MS);
    }
  }

  async function finish<T>(commit: () => Promise<T>): Promise<T> {
    try {
      return await commit();
    } finally {
      leave();
    }
  }

  return {
    run(commit) {
      if (last === null && isEntered()) return finish(commit);
      const entered = enterAfter(last);
      last = entered;
      return entered.then(() => {
        if (last === entered) last = null;
        return finish(commit);
      });
    },
    close() {
      ownFolders.delete(folder);
      closeSync(file);
    },
  };
}

/**
 * Null if nobody can commit to the database because it does not exist yet or is on a read-only file system. Also null
 * on macOS, which can only lock entire files, so openings are not kept apart from commits there.
 */
function openToLock(dataDir: string): number | null {
  if (process.platform === 'darwin') return null;
  try {
    return openSync(join(dataDir, DATABASE_FILE), 'r+');
  } catch (cause) {
    const { code = '' } = cause as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'EROFS') return null;
    throw cause;
  }
}
