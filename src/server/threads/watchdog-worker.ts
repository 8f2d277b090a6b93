/**
 * The thread that ends the process when another one hangs. It waits for no other thread: it writes to
 * standard error itself, because the authority's thread writes the log.
 */
import { write } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import { createLogger } from '../../base/log/logger.ts';
import { systemRuntime } from '../../base/runtime.ts';
import { AUTHORITY_SLOT, createLook, TICK_MS } from './beats.ts';
import type { WatchdogSettings } from './watchdog.ts';

const STANDARD_ERROR = 2;
/** The reader of standard error may have stopped reading. */
const LAST_LINE_MS = 1000;

const { beats, logLevel: level, logFormat: format } = workerData as WatchdogSettings;
const logger = createLogger({
  level,
  format,
  destination: { write: (line) => write(STANDARD_ERROR, line, kill) },
  now: systemRuntime.now,
});
const look = createLook(beats);

const looking = setInterval(() => {
  const slot = look();
  if (slot === null) return;
  clearInterval(looking);
  setInterval(kill, LAST_LINE_MS);
  logger.write('CRITICAL', 'watchdog', `Ending after a failure: ${nameOf(slot)} has hung`);
}, TICK_MS);
parentPort?.postMessage('ready');

function nameOf(slot: number): string {
  return slot === AUTHORITY_SLOT ? 'the authority' : `edge thread ${slot}`;
}

/** A thread that hangs cannot be asked to end, and none but the main thread can end the process in order. */
function kill(): void {
  process.kill(process.pid, 'SIGKILL');
}
