/**
 * Runs one task in a child process with lower priority: reading a whole state takes CPU, memory and native code, which
 * must not delay or crash the service.
 */
import { fork } from 'node:child_process';
import type { KeySource, LabeledKey } from '../../base/signer/authority-signer.ts';
import { workerEntry } from '../../base/worker-entry.ts';
import type { BackupOrder } from '../../maintenance/backup/create.ts';
import type { NamedDatabase } from '../../store/open.ts';
import type { ScrubbedPart, ScrubPlace } from '../../store/scrub.ts';

/** A state to read. */
export interface StateToRead {
  readonly dataDir: string;
  /** Null if the data folder holds the state. */
  readonly database: NamedDatabase | null;
}

export interface BackupTask
  extends StateToRead,
    Pick<BackupOrder, 'genesis' | 'recipients' | 'path' | 'now'> {
  readonly keySource: KeySource;
  /** The configured key. */
  readonly key: LabeledKey;
}

export interface MadeFile {
  readonly bytes: number;
  readonly revision: number;
}

export interface ScrubTask extends StateToRead {
  /** Null for the first part. */
  readonly from: ScrubPlace | null;
  /** The number of parts that the state is divided into, not counting rows added meanwhile. */
  readonly parts: number;
}

/** What a child process is for: the task, and its result. */
interface Work {
  readonly backup: readonly [BackupTask, MadeFile];
  readonly scrub: readonly [ScrubTask, ScrubbedPart];
}

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
 * one-sentence error if it fails; for a scrub, damage is not a failure. An abort kills the process at any point, and the
 * incomplete file of a backup remains.
 */
export function runInChildProcess<Worker extends keyof Work>(
  worker: Worker,
  task: Work[Worker][0],
  abort: AbortSignal,
): Promise<Work[Worker][1]> {
  return new Promise((resolve, reject) => {
    abort.throwIfAborted();
    const { module, argv } = workerEntry(worker, import.meta.url);
    const child = fork(module, argv, {
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
    child.once('message', (outcome: Outcome<Work[Worker][1]>) => {
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
