/** How much the system lets a process write, and how many files it lets it open. */
import { readFileSync, statfsSync } from 'node:fs';
import { statfs } from 'node:fs/promises';

/** How many bytes this process may still write below the folder; null if the system does not report it. */
export async function freeSpace(folder: string): Promise<number | null> {
  try {
    const { bavail, bsize } = await statfs(folder);
    return bavail * bsize;
  } catch {
    return null;
  }
}

/** The limit on open files of a process; infinite without a limit, and null if the system does not report it. */
export function openFileLimit(pid: number | 'self'): number | null {
  try {
    // This file exists only on Linux.
    const limits = readFileSync(`/proc/${pid}/limits`, 'latin1');
    const [, limit] = /^Max open files +(\d+|unlimited)/m.exec(limits) ?? [];
    if (limit === undefined) return null;
    return limit === 'unlimited' ? Number.POSITIVE_INFINITY : Number(limit);
  } catch {
    return null;
  }
}

/** The error code in the form that LMDB reports. */
const EIO = 5;
/** A commit writes up to this many bytes per call. */
const FULL_BELOW = 1024 ** 2;

/** LMDB reports a write that was cut short by a full disk as an I/O error. */
export function nameFullDisk(cause: unknown, folder: string): unknown {
  if (!(cause instanceof Error) || !('code' in cause) || cause.code !== EIO) return cause;
  try {
    const { bavail, bsize } = statfsSync(folder);
    const free = bavail * bsize;
    if (free >= FULL_BELOW) return cause;
    return new Error(`No space left on device: ${free} bytes are free in ${folder}`, { cause });
  } catch {
    return cause;
  }
}
