/** What of a state that is being moved lies in a data folder: a folder next to the place of the state. */
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Arrival, encodeMeta, metaValue } from '../meta-rows.ts';
import { tryLockFolder } from './folder-lock.ts';

export const ARRIVING = '.arriving';
const MARK_FILE = 'arrival';

/** Null when nothing is being moved into the folder. */
export function arrivalIn(dataDir: string): Arrival | null {
  return metaValue({ get: () => readMark(join(dataDir, ARRIVING, MARK_FILE)) }, 'arriving');
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
  writeFileSync(fresh, encodeMeta('arriving', arrival), { mode: 0o600, flush: true });
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

export interface AwaitArrivalOptions {
  pause(milliseconds: number): Promise<void>;
  /** Called once, if there is anything to wait for; `from` is the place that the state comes from. */
  waiting(from: string): void;
  /** Ends the waiting. */
  readonly signal: AbortSignal;
}

/** How often the folder is looked at. */
const LOOK_MS = 100;
/** How many looks later a move that has ended lets go of the folder, at most. */
const MOST_LOOKS = 50;

/**
 * Resolves when nobody moves a state into the folder: it has arrived, or the move has died, which the process that opens
 * the folder then finds. A process that holds the folder for anything else is not waited for.
 */
export async function awaitArrival(dataDir: string, options: AwaitArrivalOptions): Promise<void> {
  const { pause, waiting, signal } = options;
  const arrival = arrivalIn(dataDir);
  if (arrival === null || !isHeld(dataDir)) return;
  waiting(arrival.from);
  while (!signal.aborted && isHeld(dataDir) && arrivalIn(dataDir) !== null) await pause(LOOK_MS);
  for (let look = 0; look < MOST_LOOKS; look += 1) {
    if (signal.aborted || !isHeld(dataDir)) return;
    await pause(LOOK_MS);
  }
}

function isHeld(dataDir: string): boolean {
  const lock = tryLockFolder(dataDir);
  lock?.release();
  return lock === null;
}
