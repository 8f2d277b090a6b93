/**
 * Makes a backup in a child process with lower priority: reading a whole state takes CPU, memory and native code, which
 * must not delay or crash the service.
 */
import { fork } from 'node:child_process';
import type { KeySource, LabeledKey } from '../../base/signer/authority-signer.ts';
import { workerEntry } from '../../base/worker-entry.ts';
import type { BackupOrder } from '../../maintenance/backup/create.ts';
import type { NamedDatabase } from '../../store/open.ts';
import { createPeer, type Message } from './rpc.ts';

export interface BackupTask extends Pick<BackupOrder, 'genesis' | 'recipients' | 'path' | 'now'> {
  readonly dataDir: string;
  /** Null if the data folder holds the state. */
  readonly database: NamedDatabase | null;
  readonly keySource: KeySource;
  /** The configured key. */
  readonly key: LabeledKey;
}

export interface MadeFile {
  readonly bytes: number;
  readonly revision: number;
}

/** What the service asks of the child. */
export type BackupProcedures = {
  backUp(task: BackupTask): Promise<MadeFile>;
};

/** In characters, of what Node.js prints about an uncaught error; the rest of a longer stack is not useful. */
const MOST_LAST_WORDS = 4000;

/**
 * The task is sent over a pipe, so it appears neither in the arguments nor in the environment. Rejects with a
 * one-sentence error if it fails. An abort kills the process at any point, and the incomplete file of a backup remains.
 */
export function backUpInChildProcess(task: BackupTask, abort: AbortSignal): Promise<MadeFile> {
  return new Promise((resolve, reject) => {
    abort.throwIfAborted();
    const { module, argv } = workerEntry('backup', import.meta.url);
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
    child.once('error', reject);
    // Emitted after `exit`, when the last message has been read.
    child.once('close', (code, signal) => {
      abort.removeEventListener('abort', kill);
      const end = [signal ?? code, lastWords.trim()].join(' ').trim();
      reject(new Error(`The child process ended with ${end}`));
    });
    const channel = {
      postMessage: (message: Message) => child.send(message, (cause) => cause && reject(cause)),
      on: (event: 'message', listener: (message: Message) => void) => child.on(event, listener),
    };
    createPeer<BackupProcedures>(channel, {}).call('backUp', task).then(resolve, reject);
  });
}
