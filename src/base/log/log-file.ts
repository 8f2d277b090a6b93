/**
 * The log file that the service itself writes. A rotation moves it away and requests a new one; until that is open,
 * lines still go to the old one, so none is lost and nothing waits.
 */
import { close, open, stat } from 'node:fs';
import { promisify } from 'node:util';
import { createLogOutput, fileWriter } from './log-output.ts';

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
