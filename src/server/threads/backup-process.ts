/** Makes a backup in a child process. */

import type { KeySource, LabeledKey } from '../../base/signer/authority-signer.ts';
import type { GenesisBlock } from '../../protocol/records/genesis.ts';
import type { NamedDatabase } from '../../store/open.ts';
import { runInChildProcess } from './apart.ts';

export interface BackupTask {
  readonly dataDir: string;
  /** Null if the data folder holds the state. */
  readonly database: NamedDatabase | null;
  readonly genesis: GenesisBlock;
  readonly keySource: KeySource;
  /** The configured key. */
  readonly key: LabeledKey;
  readonly recipients: readonly string[];
  readonly path: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

export interface MadeFile {
  readonly bytes: number;
  readonly revision: number;
}

/** Rejects with a one-sentence error if it fails. After an abort, the incomplete file remains. */
export function backUpApart(task: BackupTask, abort: AbortSignal): Promise<MadeFile> {
  return runInChildProcess('backup', task, abort);
}
