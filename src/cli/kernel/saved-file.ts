/** Atomic file writes: after a crash or failure, a file is either unchanged or complete. */
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, resolve } from 'node:path';
import { MOST_BYTES } from '../../base/byte-bounds.ts';
import { parseJson } from '../../base/json/parse.ts';
import { readNamedFile } from '../../base/named-file.ts';
import { systemRuntime } from '../../base/runtime.ts';

/** Null when there is no file. Throws when it does not contain `what`, because damaged differs from absent. */
export function readSaved<T>(
  path: string,
  read: (value: unknown) => T | null,
  what: string,
): T | null {
  if (!existsSync(path)) return null;
  const record = read(valueIn(readNamedFile(path, MOST_BYTES.list).toString()));
  if (record === null) throw new Error(`${path} does not contain ${what}`);
  return record;
}

function valueIn(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return null;
  }
}

export interface SaveOptions {
  /** Only its owner can read it. */
  readonly isSecret: boolean;
  /** Whether an existing file may be overwritten. */
  readonly overwrites: boolean;
}

/** Saves text, or pieces of it, completely or not at all. */
export function saveFile(
  path: string,
  text: string | Iterable<string>,
  options: SaveOptions,
): void {
  const draft = openDraft(path, options);
  try {
    for (const piece of typeof text === 'string' ? [text] : text) draft.write(piece);
    draft.keep();
  } finally {
    draft.close();
  }
}

/** The same for pieces that arrive asynchronously. */
export async function saveStream(
  path: string,
  pieces: AsyncIterable<string>,
  options: SaveOptions,
): Promise<void> {
  const draft = openDraft(path, options);
  try {
    for await (const piece of pieces) draft.write(piece);
    draft.keep();
  } finally {
    draft.close();
  }
}

interface Draft {
  write(piece: string): void;
  /** Flushes the file to disk and gives it its final name. */
  keep(): void;
  /** Removes the file unless it was kept. */
  close(): void;
}

function openDraft(path: string, options: SaveOptions): Draft {
  const existing = statSync(path, { throwIfNoEntry: false });
  // Write to a pipe or device instead of replacing it.
  return existing === undefined || existing.isFile() ? draftOfFile(path, options) : openPipe(path);
}

function openPipe(path: string): Draft {
  const file = openSync(path, 'w');
  return {
    write: (piece) => writeFileSync(file, piece),
    keep: () => undefined,
    close: () => closeSync(file),
  };
}

function draftOfFile(path: string, { isSecret, overwrites }: SaveOptions): Draft {
  // An unpredictable new name, so that nobody can redirect the write in a shared folder.
  const draft = `${path}.${systemRuntime.uuid()}`;
  const file = openSync(draft, 'wx', isSecret ? 0o600 : 0o666);
  return {
    write: (piece) => writeFileSync(file, piece),
    keep() {
      fsyncSync(file);
      if (overwrites) renameSync(draft, existsSync(path) ? realpathSync(path) : path);
      // Unlike a rename, a link fails if the file was created in the meantime.
      else linkSync(draft, path);
    },
    close() {
      closeSync(file);
      rmSync(draft, { force: true });
    },
  };
}

/** Replaces one of the program's own files. */
export function replaceFile(path: string, text: string): void {
  saveFile(path, text, { isSecret: true, overwrites: true });
}

/** Throws when it is foreseeable that `saveFile` would fail. */
export function assertCanSave(path: string, { overwrites }: Pick<SaveOptions, 'overwrites'>): void {
  const existing = statSync(path, { throwIfNoEntry: false });
  if (existing?.isDirectory()) throw new Error(`${path} is a folder`);
  if (existing?.isFile() && !overwrites)
    throw new Error(`${path} exists; use --force to overwrite it`);
  const written = existing === undefined || existing.isFile() ? dirname(resolve(path)) : path;
  try {
    accessSync(written, constants.W_OK);
  } catch (error) {
    throw new Error(`${written} cannot be written (${systemCode(error)})`);
  }
}

export function systemCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error);
}
