/** Asks the process that holds a data folder to stop, as a supervisor would. */
import { existsSync, readdirSync, type Stats, statSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { LOCK_FILE, type LockHolder, readHolder } from './folder-lock.ts';

export interface AskedHolder {
  /** Null if it is not known. */
  readonly holder: string | null;
  /** False if a person has to stop it. */
  readonly isAsked: boolean;
}

/** Returns a function that asks each holder of the folder only once, because a second signal would hurry it. */
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
    // The process has just ended, or belongs to another user.
    return false;
  }
}

/**
 * Whether the pid really belongs to the lock holder: in another container, it may be another process. Only a system
 * that shows the open files of a process reveals it, and only to the same user.
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
