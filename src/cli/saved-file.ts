/** Files that are either as they were or wholly written, also after a crash. */
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { parseJson } from '../json/parse.ts';
import { systemRuntime } from '../runtime.ts';

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

/** Replaces the file; only its owner can read it. */
export function replaceFile(path: string, text: string): void {
  // An unpredictable name that must be new: in a shared folder nobody can redirect the write.
  const draft = `${path}.${systemRuntime.uuid()}`;
  try {
    writeFileSync(draft, text, { mode: 0o600, flag: 'wx', flush: true });
    renameSync(draft, path);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
}
