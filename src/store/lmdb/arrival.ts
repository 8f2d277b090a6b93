/** What of a state that is being moved lies in a data folder: a folder next to the place of the state. */
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { decodeArrival, encodeArrival } from '../move/arrival.ts';
import type { Arrival } from '../move/ports.ts';

export const ARRIVING = '.arriving';
const MARK_FILE = 'arrival';

/** Null when nothing is being moved into the folder. */
export function arrivalIn(dataDir: string): Arrival | null {
  return decodeArrival(readMark(join(dataDir, ARRIVING, MARK_FILE)));
}

/** It may be removed at any moment. */
function readMark(path: string): Buffer | undefined {
  try {
    return readFileSync(path);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw cause;
  }
}

/** Written as a whole, and on disk when this returns. */
export function writeArrival(dataDir: string, arrival: Arrival): void {
  const path = join(dataDir, ARRIVING, MARK_FILE);
  const fresh = `${path}.new`;
  writeFileSync(fresh, encodeArrival(arrival), { mode: 0o600, flush: true });
  renameSync(fresh, path);
  syncFolder(join(dataDir, ARRIVING));
}

/** What was renamed in the folder stays so. */
export function syncFolder(path: string): void {
  const folder = openSync(path, 'r');
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}
