/** Ends a process that cannot continue, with one log line that names the cause and a non-zero exit code. */

import { problemText } from '../../base/error-message.ts';
import type { Logger } from '../../base/log/logger.ts';
import { nameFullDisk } from './system-limits.ts';

/** Ends the process. `where` names what failed, `cause` is the error. */
export type Fatal = (where: string, cause: unknown) => void;

export interface FatalSteps {
  readonly logger: Logger;
  /** The folder with the state; null if there is none. */
  readonly folder: string | null;
  /** Prevents further answers; resolves when none can be sent any more. */
  silence(): Promise<void>;
  /** Flushes the log and ends the process. */
  end(cause: unknown): void;
}

/** How long to wait for LMDB to report the cause of a failed commit, which arrives after the failure. */
const TRUE_CAUSE_MS = 1000;

/** Only the first failure is reported: later ones are its consequences. */
export function createFatal({ logger, folder, silence, end }: FatalSteps): Fatal {
  let failed = false;

  async function fail(where: string, cause: unknown): Promise<void> {
    const silenced = silence();
    const reported = await trueCause(cause);
    const found = folder === null ? reported : nameFullDisk(reported, folder);
    logger.write('CRITICAL', 'process', `Ending after a failure: ${where}: ${problemText(found)}`);
    await silenced;
    end(found);
  }

  return (where, cause) => {
    if (failed) return;
    failed = true;
    void fail(where, cause);
  };
}

/** A failed commit of LMDB carries a promise that rejects with the reason, such as a full disk. */
async function trueCause(cause: unknown): Promise<unknown> {
  if (!(cause instanceof Error) || !('commitError' in cause)) return cause;
  const reason = Promise.resolve(cause.commitError).catch((found: unknown) => found);
  const patience = new Promise((resolve) => setTimeout(resolve, TRUE_CAUSE_MS));
  return (await Promise.race([reason, patience])) ?? cause;
}
