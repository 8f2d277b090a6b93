/** Waits for a data folder into which a state is being moved, as instances on a database wait for their turn. */
import { arrivalIn } from './arrival.ts';
import { tryLockFolder } from './folder-lock.ts';

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
