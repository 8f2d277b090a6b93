/** One head file: locked while it is in use, and replaced as a whole. */
import { existsSync, readFileSync } from 'node:fs';
import { open, rename } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { lockFile } from '../store/lmdb/folder-lock.ts';

export interface HeadFile {
  readonly path: string;
  /** Null when there is none. Throws when another process has replaced what was written here. */
  read(): string | null;
  /** Resolves when it is on disk; rejects when another process has written the file. */
  write(text: string): Promise<void>;
  release(): void;
}

/** Throws one clear sentence when another process uses the file. */
export function openHeadFile(path: string): HeadFile {
  const lock = lockFile(
    `${path}.lock`,
    (holder) =>
      `The head file ${path} is in use by another process${holder}: a copy of the state is served already`,
  );
  let known = contentOf(path);
  return {
    path,
    read: () => known,
    async write(text) {
      if (contentOf(path) !== known) {
        throw new Error(
          `The head file ${path} was written by another process: a copy of the state is served elsewhere`,
        );
      }
      await replace(path, text);
      known = text;
    },
    release: () => lock.release(),
  };
}

function contentOf(path: string): string | null {
  return existsSync(path) ? readFileSync(path, 'utf8') : null;
}

async function replace(path: string, text: string): Promise<void> {
  const fresh = join(dirname(path), `.${basename(path)}.new`);
  const file = await open(fresh, 'w', 0o644);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(fresh, path);
  const folder = await open(dirname(path), 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
