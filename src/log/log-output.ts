/**
 * Where log lines leave the process, without ever holding it up. Lines gather to a chunk, or for a moment,
 * and one chunk is written at a time. While the other side takes nothing, a bounded number of lines waits
 * and the rest is counted and dropped; what cannot be written, as on a full disk, is dropped as well.
 */
import { fstatSync, write } from 'node:fs';
import type { Writable } from 'node:stream';
import type { LogDestination } from './logger.ts';

const CHUNK_CHARACTERS = 32 * 1024;
const LONGEST_WAIT_MS = 100;
/** Characters that wait for the chunk before them. */
const MAX_WAITING = 8 * 1024 * 1024;

export interface LogOutput extends LogDestination {
  /** Lines that nobody will read: they did not fit, or could not be written. */
  droppedLines(): number;
  /** Resolves when everything logged so far is handed over, or when the time is up. */
  flush(withinMs: number): Promise<void>;
  /** Whether a write that has not ended yet would hold up the exit of the process. */
  isStuck(): boolean;
}

/** Writes a chunk; calls back when it is handed over, with the problem if it is not. */
export type WriteChunk = (chunk: Buffer, done: (problem: Error | null | undefined) => void) => void;

/** `holdsExit` says that the process cannot exit while a chunk is being written. */
export function createLogOutput(writeChunk: WriteChunk, holdsExit: boolean): LogOutput {
  let waiting: string[] = [];
  let waitingLength = 0;
  let dropped = 0;
  let isWriting = false;
  let whenIdle: (() => void)[] = [];

  function writeNext(): void {
    if (isWriting) return;
    if (waitingLength === 0) {
      for (const resolve of whenIdle) resolve();
      whenIdle = [];
      return;
    }
    const lines = waiting.join('');
    waiting = [];
    waitingLength = 0;
    isWriting = true;
    writeChunk(Buffer.from(lines), (problem) => {
      isWriting = false;
      if (problem) dropped += lineCount(lines);
      writeNext();
    });
  }

  setInterval(writeNext, LONGEST_WAIT_MS).unref();

  return {
    write(lines) {
      if (waitingLength + lines.length > MAX_WAITING) {
        dropped += lineCount(lines);
        return;
      }
      waiting.push(lines);
      waitingLength += lines.length;
      if (waitingLength >= CHUNK_CHARACTERS) writeNext();
    },
    droppedLines: () => dropped,
    async flush(withinMs) {
      await new Promise<void>((resolve) => {
        const patience = setTimeout(resolve, withinMs);
        whenIdle.push(() => {
          clearTimeout(patience);
          resolve();
        });
        writeNext();
      });
    },
    isStuck: () => isWriting && holdsExit,
  };
}

/**
 * Standard output. Pipes and sockets are written through Node.js' stream, which never blocks on them: a
 * write that blocks a thread of the pool would keep the process from its exit.
 */
export function standardOutput(stream: Writable & { readonly fd: number }): LogOutput {
  // A reader that has gone, or a full disk, ends a command, but not the service.
  stream.removeAllListeners('error').on('error', () => undefined);
  if (isPipe(stream.fd))
    return createLogOutput((chunk, done) => void stream.write(chunk, done), false);
  return createLogOutput(fileWriter(stream.fd), true);
}

export function fileWriter(fd: number): WriteChunk {
  return function writeRest(chunk, done) {
    write(fd, chunk, (problem, written) => {
      if (problem !== null || written === chunk.length) done(problem);
      else writeRest(chunk.subarray(written), done);
    });
  };
}

function isPipe(fd: number): boolean {
  const stats = fstatSync(fd);
  return stats.isFIFO() || stats.isSocket();
}

function lineCount(lines: string): number {
  let count = 0;
  for (let at = lines.indexOf('\n'); at !== -1; at = lines.indexOf('\n', at + 1)) count += 1;
  return count;
}
