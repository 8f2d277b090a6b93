/** Asks the process that has a data folder to stop, as a supervisor would. */
import { existsSync, readdirSync, type Stats, statSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { LOCK_FILE, type LockHolder, readHolder } from './folder-lock.ts';

export interface AskedHolder {
  /** Null when it is not known. */
  readonly holder: string | null;
  /** False when somebody else has to stop it. */
  readonly isAsked: boolean;
}

/** What asks; each process that has the folder is asked once, since a second signal would hurry it. */
export function createHolderQuestion(dataDir: string): () => Promise<AskedHolder> {
  let asked: number | null = null;

  return async () => {
    const path = join(dataDir, LOCK_FILE);
    const holder = existsSync(path) ? readHolder(path) : null;
    if (holder === null) return { holder: null, isAsked: false };
    const name = `pid ${holder.pid} on ${holder.host}`;
    if (asked !== holder.pid && isCertain(holder, path) && signal(holder)) asked = holder.pid;
    return { holder: name, isAsked: asked === holder.pid };
  };
}

function signal({ pid }: LockHolder): boolean {
  try {
    return process.kill(pid, 'SIGTERM');
  } catch {
    // It has just ended, or is another user's.
    return false;
  }
}

/**
 * Whether the number means the process that has the lock: in another container it may mean another process. Only a
 * system that shows what a process has open can say so, and only to its user.
 */
function isCertain({ pid, host }: LockHolder, path: string): boolean {
  if (host !== hostname()) return false;
  const lock = statSync(path);
  const folder = `/proc/${pid}/fd`;
  try {
    return readdirSync(folder).some((name) => isSame(join(folder, name), lock));
  } catch {
    return false;
  }
}

function isSame(path: string, { dev, ino }: Stats): boolean {
  const found = statSync(path, { throwIfNoEntry: false });
  return found?.dev === dev && found.ino === ino;
}
