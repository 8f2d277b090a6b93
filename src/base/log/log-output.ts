/**
 * Writes log lines without ever blocking the process. Lines are collected until a chunk is full or a moment has passed,
 * and one chunk is written at a time, because the cost is in the call and not in its size. While the reader is stalled,
 * a bounded number of lines waits; the rest are dropped and counted, as are lines that cannot be written, for example
 * to a full disk.
 */
import { fstatSync, write } from 'node:fs';
import type { Writable } from 'node:stream';

const CHUNK_CHARACTERS = 64 * 1024;
const LONGEST_WAIT_MS = 100;
/** The most characters that may wait for the previous chunk. */
const MAX_WAITING = 8 * 1024 * 1024;

/** Writes a chunk; calls back when it is written, or with the error. */
export type WriteChunk = (chunk: string, done: (problem: Error | null | undefined) => void) => void;

export type LogOutput = ReturnType<typeof createLogOutput>;

/** `holdsExit` says that the process cannot exit while a chunk is being written. */
export function createLogOutput(writeChunk: WriteChunk, holdsExit: boolean) {
  let waiting = '';
  let dropped = 0;
  let isWriting = false;
  let isUrgentWaiting = false;
  let whenIdle: (() => void)[] = [];

  function writeNext(): void {
    if (isWriting) return;
    if (waiting === '') {
      for (const resolve of whenIdle) resolve();
      whenIdle = [];
      return;
    }
    const lines = waiting;
    waiting = '';
    isUrgentWaiting = false;
    isWriting = true;
    writeChunk(lines, (problem) => {
      isWriting = false;
      if (problem) dropped += lineCount(lines);
      if (isUrgentWaiting || waiting.length >= CHUNK_CHARACTERS || whenIdle.length > 0) writeNext();
    });
  }

  setInterval(writeNext, LONGEST_WAIT_MS).unref();

  return {
    write(lines: string, isUrgent = false): void {
      if (waiting.length + lines.length > MAX_WAITING) {
        dropped += lineCount(lines);
        return;
      }
      waiting += lines;
      isUrgentWaiting ||= isUrgent;
      if (isUrgentWaiting || waiting.length >= CHUNK_CHARACTERS) writeNext();
    },
    /** The number of dropped lines, which did not fit or could not be written. */
    droppedLines: (): number => dropped,
    /** Resolves when everything logged so far is written, or when the time is up. */
    async flush(withinMs: number): Promise<void> {
      await new Promise<void>((resolve) => {
        const patience = setTimeout(resolve, withinMs);
        whenIdle.push(() => {
          clearTimeout(patience);
          resolve();
        });
        writeNext();
      });
    },
    /** Whether a pending write would delay the exit of the process. */
    isStuck: (): boolean => isWriting && holdsExit,
  };
}

/**
 * Standard output. Pipes and sockets are written through the Node.js stream, which never blocks on them; a write that
 * blocks a pool thread would delay the exit.
 */
export function standardOutput(stream: Writable & { readonly fd: number }): LogOutput {
  // A closed pipe or a full disk ends a command but must not end the service.
  stream.removeAllListeners('error').on('error', () => undefined);
  if (isPipe(stream.fd))
    return createLogOutput((chunk, done) => void stream.write(chunk, done), false);
  return createLogOutput(fileWriter(stream.fd), true);
}

export function fileWriter(fd: number): WriteChunk {
  function writeRest(chunk: Buffer, done: Parameters<WriteChunk>[1]): void {
    write(fd, chunk, (problem, written) => {
      if (problem !== null || written === chunk.length) done(problem);
      else writeRest(chunk.subarray(written), done);
    });
  }

  // A buffer for each chunk would burden the garbage collector; only a short write needs one.
  return (chunk, done) => {
    write(fd, chunk, null, 'utf8', (problem, written) => {
      if (problem !== null || written === Buffer.byteLength(chunk)) done(problem);
      else writeRest(Buffer.from(chunk).subarray(written), done);
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
