/**
 * Writes log lines without ever blocking the process. Lines are collected until a chunk is full or a moment has passed,
 * and one chunk is written at a time, because the cost is in the call and not in its size. While the reader is stalled,
 * a bounded number of lines waits; the rest are dropped and counted, as are lines that cannot be written, for example
 * to a full disk.
 */
import { close, fstatSync, open, stat, write } from 'node:fs';
import type { Writable } from 'node:stream';
import { promisify } from 'node:util';

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

/**
 * The log file that the service itself writes. A rotation moves it away and requests a new one; until that is open,
 * lines still go to the old one, so none is lost and nothing waits.
 */

/** Writable for the owner, readable for a group that reads logs. */
const MODE = 0o640;

/** Throws a one-sentence error if lines cannot be appended there. */
export async function openLogFile(path: string) {
  let file = await openForLines(path);
  let next: number | null = null;
  let writeChunk = fileWriter(file);

  /** Called between two chunks, so no write to the old file is under way. */
  function change(to: number): void {
    close(file, ignore);
    file = to;
    writeChunk = fileWriter(file);
    next = null;
  }

  const output = createLogOutput((chunk, done) => {
    if (next !== null) change(next);
    writeChunk(chunk, done);
  }, true);
  return {
    ...output,
    /** Reopens the path. If it cannot be opened, throws and keeps writing to the previous file. */
    async reopen(): Promise<void> {
      const opened = await openForLines(path);
      if (next !== null) close(next, ignore);
      next = opened;
    },
  };
}

async function openForLines(path: string): Promise<number> {
  try {
    if (await isLineFile(path)) return await promisify(open)(path, 'a', MODE);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new Error(`The log file ${path} cannot be opened (${code}); name another by --log-file`);
  }
  throw new Error(`The log file ${path} is not a file; name another by --log-file`);
}

/** Opening a pipe would wait for its reader. */
async function isLineFile(path: string): Promise<boolean> {
  try {
    const stats = await promisify(stat)(path);
    return stats.isFile() || stats.isCharacterDevice();
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return true;
    throw cause;
  }
}

function ignore(): void {}
