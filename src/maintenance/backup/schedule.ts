/**
 * Scheduled backups. They never affect the service: a failure is reported and retried, and older backups are removed
 * only after a newer one is verified.
 */
import type { BackupFacts } from '../../authority/host-status.ts';
import type { KeptFiles } from './kept-files.ts';

export interface BackupSettings {
  readonly folder: string;
  /** The interval between backups, in milliseconds. */
  readonly every: number;
  /** How many are kept. */
  readonly keep: number;
  /** Empty if backups are not encrypted. */
  readonly recipients: readonly string[];
}

export interface BackupScheduleOptions {
  readonly settings: Pick<BackupSettings, 'every' | 'keep'>;
  readonly files: KeptFiles;
  readonly now: () => number;
  /** Writes and verifies a backup; rejects if anything is wrong. */
  make(path: string, now: number): Promise<void>;
  verified(at: number): void;
  failed(): void;
  /** Aborted when the service stops, which does not count as a failed backup. */
  readonly abort: AbortSignal;
}

export type BackupSchedule = ReturnType<typeof createBackupSchedule>;

const FIRST_RETRY_MS = 60_000;
const LONGEST_RETRY_MS = 3_600_000;

export function createBackupSchedule(options: BackupScheduleOptions) {
  const { settings, files, now, make, verified, failed, abort } = options;
  const since = now();
  let verifiedAt: number | null = null;
  let isPrepared = false;
  let failures = 0;
  let retryAt = 0;

  /** The folder may be unavailable at startup. */
  async function prepare(): Promise<void> {
    note(await files.newest());
    isPrepared = true;
  }

  function note(at: number | null): void {
    verifiedAt = at;
    if (at !== null) verified(at);
  }

  function isDue(at: number): boolean {
    // The clock may have been set back since the newest backup was made.
    return verifiedAt === null || at >= verifiedAt + settings.every || verifiedAt > at;
  }

  async function makeOne(at: number): Promise<void> {
    // Each backup that is killed, for example for lack of memory, would leave as much on the disk as it has written.
    await files.removePartial();
    await make(files.pathAt(at), at);
    note(at);
    await files.prune(settings.keep, at);
  }

  return {
    /** Makes a backup if one is due; rejects if it fails. */
    async check(): Promise<void> {
      const at = now();
      if (failures > 0 && at < retryAt && retryAt - at <= LONGEST_RETRY_MS) return;
      try {
        if (!isPrepared) await prepare();
        if (isDue(at)) await makeOne(at);
        failures = 0;
      } catch (cause) {
        if (abort.aborted) return;
        retryAt = at + Math.min(FIRST_RETRY_MS * 2 ** failures, LONGEST_RETRY_MS, settings.every);
        failures += 1;
        failed();
        throw cause;
      }
    },
    /** The input for the posture rules. */
    get facts(): BackupFacts {
      return { every: settings.every, verifiedAt, since };
    },
  };
}
