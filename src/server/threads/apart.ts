/**
 * One task in a process of its own, with a lower priority: reading a whole state takes processor, memory and native
 * code, none of which may hold up or end the service.
 */
import { fork } from 'node:child_process';
import { threadEntry } from './thread-entry.ts';

/** What such a process says last. */
export type Outcome<Result> =
  | { readonly ok: true; readonly result: Result }
  | { readonly ok: false; readonly problem: string };

/** The process has ended without an outcome. */
export class EndedApart extends Error {
  /** Null when it was not ended by a signal. */
  readonly signal: NodeJS.Signals | null;

  /** `lastWords` is what Node.js writes of what nobody has caught, with the stack. */
  constructor(code: number | null, signal: NodeJS.Signals | null, lastWords = '') {
    super(
      `The process for it has ended with ${[signal ?? code, lastWords.trim()].join(' ').trim()}`,
    );
    this.signal = signal;
  }
}

/** Characters; the rest of a longer stack is of no use. */
const MOST_LAST_WORDS = 4000;

/**
 * The task is sent over a pipe, and is neither an argument nor in the environment. Rejects with one sentence when it
 * fails. An abort kills the process, whatever it was doing.
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
      // Not waited for: a process may hang in a call to a disk that is gone.
      reject(new Error('The service stops'));
    };
    abort.addEventListener('abort', kill, { once: true });
    child.once('message', (outcome: Outcome<Result>) => {
      if (outcome.ok) resolve(outcome.result);
      else reject(new Error(outcome.problem));
    });
    child.once('error', reject);
    // Later than `exit`: by then its last message has been read.
    child.once('close', (code, signal) => {
      abort.removeEventListener('abort', kill);
      reject(new EndedApart(code, signal, lastWords));
    });
    child.send(task, (cause) => cause && reject(cause));
  });
}
