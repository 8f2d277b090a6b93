/**
 * Where log lines leave the process. They gather to a chunk, or for a moment: handing each to the threads
 * that write would cost more than making it. A process that is killed loses no more than that moment.
 */
import { pino } from 'pino';
import type { LogDestination } from './logger.ts';

const CHUNK = 32 * 1024;
const LONGEST_WAIT_MS = 100;

export interface LogFile extends LogDestination {
  /** Returns when everything written so far is handed to the system. */
  flushSync(): void;
}

/** Writes to an open file; what still waits when the process exits is written then. */
export function logFile(fd: number): LogFile {
  const output = pino.destination({ fd, sync: false, minLength: CHUNK, maxWrite: 2 * CHUNK });
  let gathered = '';
  function handOver(): void {
    if (gathered !== '') output.write(gathered);
    gathered = '';
  }
  function flushSync(): void {
    handOver();
    output.flushSync();
  }
  setInterval(() => {
    handOver();
    output.flush();
  }, LONGEST_WAIT_MS).unref();
  process.once('exit', flushSync);
  return {
    write(lines) {
      gathered += lines;
      if (gathered.length >= CHUNK) handOver();
    },
    flushSync,
  };
}
