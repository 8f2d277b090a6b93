/** A head file: locked while in use, and replaced atomically. */
import { existsSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { MOST_BYTES } from '../../base/byte-bounds.ts';
import { syncFolderAsync } from '../../base/durable-file.ts';
import { readNamedFile } from '../../base/named-file.ts';
import { systemRuntime } from '../../base/runtime.ts';
import { lockFile } from '../../store/lmdb/folder-lock.ts';

export type HeadFile = ReturnType<typeof openHeadFile>;

/** Throws a one-sentence error if another process uses the file. */
export function openHeadFile(path: string) {
  const lock = lockFile(
    `${path}.lock`,
    (holder) =>
      `The head file ${path} is in use by another process${holder}: a copy of this state is already being served`,
  );
  removeDrafts(path);
  let known = contentOf(path);
  return {
    path,
    /** As it was found, or last written here; null if there is none. */
    read: (): string | null => known,
    /** Resolves when the text is on disk; rejects if another process has written the file. */
    async write(text: string): Promise<void> {
      await replace(path, known, text);
      known = text;
    },
    release: (): void => lock.release(),
  };
}

/** Removes drafts left behind by killed processes. The caller must hold the lock. */
function removeDrafts(path: string): void {
  const draft = basename(draftOf(path));
  for (const name of readdirSync(dirname(path))) {
    if (name.startsWith(draft)) rmSync(join(dirname(path), name), { force: true });
  }
}

/** The prefix of the names of draft files that will replace it. */
function draftOf(path: string): string {
  return join(dirname(path), `.${basename(path)}.new.`);
}

function contentOf(path: string): string | null {
  return existsSync(path) ? readNamedFile(path, MOST_BYTES.key).toString() : null;
}

/**
 * Others may be able to write to the folder, so the draft has an unpredictable new name, and nobody can redirect the
 * write.
 */
async function replace(path: string, known: string | null, text: string): Promise<void> {
  const fresh = `${draftOf(path)}${systemRuntime.uuid()}`;
  const file = await open(fresh, 'wx', 0o644);
  try {
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    // Compared and replaced synchronously: syncing takes long enough for another process to write the file.
    if (contentOf(path) !== known) {
      throw new Error(
        `The head file ${path} was written by another process: a copy of this state is being served elsewhere`,
      );
    }
    renameSync(fresh, path);
  } catch (cause) {
    await rm(fresh, { force: true });
    throw cause;
  }
  await syncFolderAsync(dirname(path));
}
