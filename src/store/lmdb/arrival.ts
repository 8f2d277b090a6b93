/** A state that is being moved into a data folder, in a folder next to its final place. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { replaceFile } from '../../base/durable-file.ts';
import { type Arrival, encodeMeta, metaValue } from '../meta-rows.ts';
import { tryLockFolder } from './folder-lock.ts';

export const ARRIVING = '.arriving';
const MARK_FILE = 'arrival';

/** Null if nothing is being moved into the folder. */
export function arrivalIn(dataDir: string): Arrival | null {
  return metaValue({ get: () => readMark(join(dataDir, ARRIVING, MARK_FILE)) }, 'arriving');
}

/** The file may be removed at any moment. */
function readMark(path: string): Buffer | undefined {
  try {
    return readFileSync(path);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw cause;
  }
}

export function writeArrival(dataDir: string, arrival: Arrival): void {
  replaceFile(join(dataDir, ARRIVING, MARK_FILE), encodeMeta('arriving', arrival), 0o600);
}

export interface AwaitArrivalOptions {
  pause(milliseconds: number): Promise<void>;
  /** Called once if there is something to wait for; `from` is the place the state comes from. */
  waiting(from: string): void;
  /** Ends the waiting. */
  readonly signal: AbortSignal;
}

/** How often the folder is checked. */
const LOOK_MS = 100;
/** After at most this many checks, a finished move has released the folder. */
const MOST_LOOKS = 50;

/**
 * Resolves when no state is being moved into the folder: it has arrived, or the move has died, which the process that
 * opens the folder then detects. Does not wait for a process that holds the folder for any other purpose.
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
