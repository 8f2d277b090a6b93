/**
 * Runs one task in a child process with lower priority: reading a whole state takes CPU, memory and native code, which
 * must not delay or crash the service.
 */
import { fork } from 'node:child_process';
import { threadEntry } from './thread-entry.ts';

/** The last message of the child process. */
export type Outcome<Result> =
  | { readonly ok: true; readonly result: Result }
  | { readonly ok: false; readonly problem: string };

/** The process ended without an outcome. */
export class EndedApart extends Error {
  /** Null if it was not ended by a signal. */
  readonly signal: NodeJS.Signals | null;

  /** `lastWords` is what Node.js prints about an uncaught error, with the stack. */
  constructor(code: number | null, signal: NodeJS.Signals | null, lastWords = '') {
    super(`The child process ended with ${[signal ?? code, lastWords.trim()].join(' ').trim()}`);
    this.signal = signal;
  }
}

/** In characters; the rest of a longer stack is not useful. */
const MOST_LAST_WORDS = 4000;

/**
 * The task is sent over a pipe, so it appears neither in the arguments nor in the environment. Rejects with a
 * one-sentence error if it fails. An abort kills the process at any point.
 */
export function runInChildProcess<Task extends object, Result>(
  worker: 'backup' | 'scrub',
  task: Task,
  abort: AbortSignal,
): Promise<Result> {
  return new Promise((resolve, reject) => {
    abort.throwIfAborted();
    const child = fork(threadEntry(worker), {
      execArgv: [],
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    });
    let lastWords = '';
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      lastWords = (lastWords + text).slice(-MOST_LAST_WORDS);
    });
    const kill = () => {
      child.kill('SIGKILL');
      // Not waited for: the process may hang in a call to an unresponsive disk.
      reject(new Error('The service is stopping'));
    };
    abort.addEventListener('abort', kill, { once: true });
    child.once('message', (outcome: Outcome<Result>) => {
      if (outcome.ok) resolve(outcome.result);
      else reject(new Error(outcome.problem));
    });
    child.once('error', reject);
    // Emitted after `exit`, when the last message has been read.
    child.once('close', (code, signal) => {
      abort.removeEventListener('abort', kill);
      reject(new EndedApart(code, signal, lastWords));
    });
    child.send(task, (cause) => cause && reject(cause));
  });
}
