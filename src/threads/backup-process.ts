/**
 * Makes a backup in a process of its own, with a lower priority: reading a whole state takes processor, memory
 * and native code, none of which may hold up or end the service.
 */
import { fork } from 'node:child_process';
import type { GenesisBlock } from '../records/genesis.ts';
import type { NamedDatabase } from '../store/open.ts';
import { threadEntry } from './thread-entry.ts';

/** What the process needs; it is sent over a pipe, and neither an argument nor in its environment. */
export interface BackupTask {
  readonly dataDir: string;
  /** Null when the data folder holds the state. */
  readonly database: NamedDatabase | null;
  readonly genesis: GenesisBlock;
  readonly seed: Uint8Array;
  /** Label of the key in the signature of the manifest. */
  readonly keyId: string;
  readonly recipients: readonly string[];
  readonly path: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

export type BackupOutcome =
  | { readonly ok: true; readonly bytes: number; readonly revision: number }
  | { readonly ok: false; readonly problem: string };

export interface MadeFile {
  readonly bytes: number;
  readonly revision: number;
}

const WORKER = threadEntry('backup');

/** Rejects with one sentence when it fails. An abort kills the process, and what it wrote stays incomplete. */
export function backUpApart(task: BackupTask, abort: AbortSignal): Promise<MadeFile> {
  return new Promise((resolve, reject) => {
    abort.throwIfAborted();
    const child = fork(WORKER, {
      execArgv: [],
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    const kill = () => {
      child.kill('SIGKILL');
      // Not waited for: a process may hang in a write to a disk that is gone.
      reject(new Error('The service stops'));
    };
    abort.addEventListener('abort', kill, { once: true });
    child.once('message', (outcome: BackupOutcome) => {
      if (outcome.ok) resolve(outcome);
      else reject(new Error(outcome.problem));
    });
    child.once('error', reject);
    // Later than `exit`: by then its last message has been read.
    child.once('close', (code, signal) => {
      abort.removeEventListener('abort', kill);
      reject(new Error(`The process that makes it has ended with ${signal ?? code}`));
    });
    child.send(task, (cause) => cause && reject(cause));
  });
}
