/** Files whose contents survive a crash of the machine. */
import { closeSync, fsyncSync, openSync, renameSync, writeFileSync } from 'node:fs';
import { open, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Replaces a file atomically; the new contents are on disk when this returns. */
export function replaceFile(path: string, contents: string | Uint8Array, mode: number): void {
  const fresh = `${path}.new`;
  writeFileSync(fresh, contents, { mode, flush: true });
  renameSync(fresh, path);
  syncFolder(dirname(path));
}

/** Makes renames in the folder durable. */
export function syncFolder(path: string): void {
  const folder = openSync(path, 'r');
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

/** Like `replaceFile`, without holding the thread while the disk writes. */
export async function replaceFileAsync(
  path: string,
  contents: string,
  mode: number,
): Promise<void> {
  const fresh = `${path}.new`;
  await writeFile(fresh, contents, { mode, flush: true });
  await rename(fresh, path);
  await syncFolderAsync(dirname(path));
}

/** Like `syncFolder`, without holding the thread. */
export async function syncFolderAsync(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
