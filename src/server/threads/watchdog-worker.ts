/**
 * The thread that ends the process when another one hangs. It depends on no other thread: it writes to standard error
 * directly, because the authority's thread writes the log.
 */
import { write } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import { createLogger } from '../../base/log/logger.ts';
import { systemRuntime } from '../../base/runtime.ts';
import {
  AUTHORITY_SLOT,
  createLook,
  TICK_MS,
  type WatchdogProcedures,
  type WatchdogSettings,
} from './beats.ts';
import { createPeer } from './rpc.ts';

const STANDARD_ERROR = 2;
/** The reader of standard error may have stopped reading. */
const LAST_LINE_MS = 1000;

const { beats, log } = workerData as WatchdogSettings;
const logger = createLogger({
  ...log,
  destination: { write: (line) => write(STANDARD_ERROR, line, kill) },
  now: systemRuntime.now,
});
const look = createLook(beats);

const looking = setInterval(() => {
  const slot = look();
  if (slot === null) return;
  clearInterval(looking);
  setInterval(kill, LAST_LINE_MS);
  logger.write('CRITICAL', 'watchdog', `Ending after a failure: ${nameOf(slot)} hangs`);
}, TICK_MS);
if (parentPort !== null)
  createPeer(parentPort, { ready: () => undefined } satisfies WatchdogProcedures);

function nameOf(slot: number): string {
  return slot === AUTHORITY_SLOT ? 'the authority' : `edge thread ${slot}`;
}

/** A hung thread cannot be asked to end, and only the main thread could exit the process cleanly. */
function kill(): void {
  process.kill(process.pid, 'SIGKILL');
}
