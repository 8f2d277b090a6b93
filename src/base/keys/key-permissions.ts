import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

const OTHERS = 0o007;

/** Those key files, in the folder and among the other paths, that every user of the machine can open. */
export function exposedKeyFiles(folder: string, others: readonly string[]): string[] {
  return [...new Set([...keyFilesIn(folder), ...others])].filter(isExposed);
}

function keyFilesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
      .filter((name) => name.endsWith('.key'))
      .map((name) => join(folder, name));
  } catch {
    return [];
  }
}

/** Whether users other than its owner and group can open the file. */
export function isExposed(path: string): boolean {
  return ((statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & OTHERS) !== 0;
}
