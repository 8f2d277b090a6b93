/** Files that are either as they were or wholly written, also after a crash. */
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, resolve } from 'node:path';
import { parseJson } from '../base/json/parse.ts';
import { systemRuntime } from '../base/runtime.ts';

/** Null when there is no file. Throws when it does not hold `what`: damaged is not the same as absent. */
export function readSaved<T>(
  path: string,
  read: (value: unknown) => T | null,
  what: string,
): T | null {
  if (!existsSync(path)) return null;
  const record = read(valueIn(readFileSync(path, 'utf8')));
  if (record === null) throw new Error(`${path} does not hold ${what}`);
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
  /** Whether a file of that name may go. */
  readonly overwrites: boolean;
}

/** Saves text, or its pieces, in a file that is wholly written or, after a failure, as it was. */
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

/** The same with pieces that have to be waited for. */
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
  /** What was written is on disk and has its name. */
  keep(): void;
  /** Nothing is left of what was not kept. */
  close(): void;
}

function openDraft(path: string, options: SaveOptions): Draft {
  const existing = statSync(path, { throwIfNoEntry: false });
  // A pipe or a device is written to, not replaced.
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
  // An unpredictable name that must be new: in a shared folder nobody can redirect the write.
  const draft = `${path}.${systemRuntime.uuid()}`;
  const file = openSync(draft, 'wx', isSecret ? 0o600 : 0o666);
  return {
    write: (piece) => writeFileSync(file, piece),
    keep() {
      fsyncSync(file);
      if (overwrites) renameSync(draft, existsSync(path) ? realpathSync(path) : path);
      // Unlike a renaming it fails when somebody has made the file meanwhile.
      else linkSync(draft, path);
    },
    close() {
      closeSync(file);
      rmSync(draft, { force: true });
    },
  };
}

/** Replaces a file of our own. */
export function replaceFile(path: string, text: string): void {
  saveFile(path, text, { isSecret: true, overwrites: true });
}

/** Throws when `saveFile` would fail for a reason that can be known before. */
export function assertCanSave(path: string, { overwrites }: Pick<SaveOptions, 'overwrites'>): void {
  const existing = statSync(path, { throwIfNoEntry: false });
  if (existing?.isDirectory()) throw new Error(`${path} is a folder`);
  if (existing?.isFile() && !overwrites) throw new Error(`${path} exists; --force overwrites it`);
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
