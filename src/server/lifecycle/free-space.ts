import { statfsSync } from 'node:fs';
import { statfs } from 'node:fs/promises';

/** Bytes that this process may still write below the folder; null where the system does not say. */
export async function freeSpace(folder: string): Promise<number | null> {
  try {
    const { bavail, bsize } = await statfs(folder);
    return bavail * bsize;
  } catch {
    return null;
  }
}

/** As LMDB gives it. */
const EIO = 5;
/** A commit writes up to this many bytes by one call. */
const FULL_BELOW = 1024 ** 2;

/** LMDB takes a write that a full disk has cut short for an error of the disk. */
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
