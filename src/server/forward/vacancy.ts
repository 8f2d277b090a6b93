/**
 * Finds out that nobody is active: this instance has reached neither the active one nor a writable database for so long
 * that every lease it knows of has expired [link-6].
 *
 * It cannot distinguish a database that is down from one that only this instance cannot reach. So each copy that it
 * serves then says since when it may be outdated, and an instance that reaches the database serves none.
 */

import type { Logger } from '../../base/log/logger.ts';
import {
  answersIn,
  type InstanceStatusMemory,
  noteVacant,
} from '../../protocol/contract/instance-status.ts';

export interface VacancyOptions {
  readonly memory: InstanceStatusMemory;
  /** How long a lease lasts without renewal, milliseconds. */
  readonly leaseMs: number;
  readonly logger: Logger;
  elapsed(): number;
}

export function createVacancy({ memory, leaseMs, logger, elapsed }: VacancyOptions) {
  let reachedAt = elapsed();
  let answers = answersIn(memory);
  let isVacant = false;

  function reached(): void {
    reachedAt = elapsed();
    if (!isVacant) return;
    isVacant = false;
    noteVacant(memory, false);
    logger.write('INFO', 'link', 'The database or an active instance can be reached again');
  }

  return {
    /** Call when the database has said who is active, or that nobody is. */
    reached,
    /** Call when the database is unreachable or read-only, so that nobody can become active. */
    missed(): void {
      const known = answers;
      answers = answersIn(memory);
      if (answers !== known) reached();
      // The instance that was last active may still hold a valid lease.
      if (isVacant || elapsed() - reachedAt < leaseMs) return;
      isVacant = true;
      noteVacant(memory, true);
      const problem = 'Neither a writable database nor an active instance can be reached';
      const served = 'the signed documents that were passed on last are served, marked as such';
      logger.write('WARNING', 'link', `${problem}: ${served}, and all other requests are refused`);
    },
  };
}
