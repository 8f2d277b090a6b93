/** Temporary folders that are removed with their process. What a killed process has left is removed by the next one. */
import { existsSync, mkdtempSync, readdirSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LOCK_FILE, lockFolder } from '../../src/store/lmdb/folder-lock.ts';

export interface Scratch {
  readonly path: string;
  remove(): void;
}

export interface ScratchOptions {
  /** The system's folder for temporary files, unless given. */
  readonly below?: string;
  /** Called before the folder is removed at the end of this process, to end everything that writes there. */
  readonly atExit?: () => void;
}

const ATTEMPTS = 20;

const SHARED_MEMORY = '/dev/shm';
/** A multiple of what all concurrent tests need. */
const SCRATCH_BYTES = 4 * 1024 ** 3;

/** A folder whose lock is held belongs to a live process. */
const held = new Map<string, { release(): void; atExit(): void }>();

process.once('exit', () => {
  for (const [path, { atExit }] of held) {
    atExit();
    removeFolder(path);
  }
});

/** Creates a folder and removes abandoned ones; all folders with this prefix must be created here. */
export function scratchFolder(
  prefix: string,
  { below = tmpdir(), atExit = () => undefined }: ScratchOptions = {},
): Scratch {
  removeAbandoned(prefix, below);
  const { path, lock } = lockedFolder(join(below, prefix));
  held.set(path, { release: () => lock.release(), atExit });
  return {
    path,
    remove() {
      removeFolder(path);
      held.get(path)?.release();
      held.delete(path);
    },
  };
}

/** In memory if there is room, because on a disk, creating and removing folders takes most of a test's time. */
export function scratchParent(): string {
  try {
    const { bavail, bsize } = statfsSync(SHARED_MEMORY);
    if (bavail * bsize >= SCRATCH_BYTES) return SHARED_MEMORY;
  } catch {
    // Only Linux has it.
  }
  return tmpdir();
}

/** Until a new folder is locked, another process may consider it abandoned and remove it. */
function lockedFolder(prefix: string) {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const path = mkdtempSync(prefix);
    const lock = tryLock(path);
    if (lock === null) continue;
    if (existsSync(join(path, LOCK_FILE))) return { path, lock };
    lock.release();
  }
  throw new Error(`No folder at ${prefix} could be locked`);
}

function removeAbandoned(prefix: string, below: string): void {
  for (const name of readdirSync(below)) {
    const path = join(below, name);
    // A folder without a lock file was created just now, or by someone else.
    if (!name.startsWith(prefix) || !existsSync(join(path, LOCK_FILE))) continue;
    const lock = tryLock(path);
    if (lock === null) continue;
    removeFolder(path);
    lock.release();
  }
}

/** Null for a folder that is in use, or of another user, or that is being removed. */
function tryLock(path: string) {
  try {
    return lockFolder(path);
  } catch {
    return null;
  }
}

/** Retries, because a server may still be writing there. */
function removeFolder(path: string): void {
  rmSync(path, { recursive: true, force: true, maxRetries: 20 });
}
