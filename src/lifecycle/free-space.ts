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
