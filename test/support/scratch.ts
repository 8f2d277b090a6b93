/** Temporary folders that go with their process; what one that was killed has left goes with the next. */
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LOCK_FILE, tryLockFolder } from '../../src/store/lmdb/folder-lock.ts';

export interface Scratch {
  readonly path: string;
  remove(): void;
}

export interface ScratchOptions {
  /** The system's folder for temporary files, unless given. */
  readonly below?: string;
  /** Called before the folder is removed at the end of this process: whoever writes there has to be ended. */
  readonly atExit?: () => void;
}

const ATTEMPTS = 20;

/** The lock on a folder tells that its process lives. */
const held = new Map<string, { release(): void; atExit(): void }>();

process.once('exit', () => {
  for (const [path, { atExit }] of held) {
    atExit();
    removeFolder(path);
  }
});

/** All folders of one prefix are made here. */
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

/** Until it is locked, another process may take a new folder for one that was abandoned, and remove it. */
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
    // Without a lock it was made a moment ago, or by somebody else.
    if (!name.startsWith(prefix) || !existsSync(join(path, LOCK_FILE))) continue;
    const lock = tryLock(path);
    if (lock === null) continue;
    removeFolder(path);
    lock.release();
  }
}

/** Null also for the folder of another user, and for one that is just being removed. */
function tryLock(path: string) {
  try {
    return tryLockFolder(path);
  } catch {
    return null;
  }
}

/** What a server is still writing there is in the way for a moment. */
function removeFolder(path: string): void {
  rmSync(path, { recursive: true, force: true, maxRetries: 20 });
}
