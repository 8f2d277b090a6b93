/**
 * When the last copies of signed documents are served although they may be outdated: while this instance reaches
 * neither the one that writes nor a database in which anybody could, for so long that no right to write that it knows of is left [link-6].
 *
 * It cannot distinguish a database that is gone from one that it alone does not reach. So what it serves then says since when
 * it may be outdated; and an instance that reaches the database and not the writer serves no copy at all.
 */

import type { Logger } from '../../base/log/logger.ts';
import { formatInstant } from '../../base/timestamp.ts';
import { noteStale, type StandingMemory } from '../../protocol/contract/instance-status.ts';
import type { LinkClient } from './client.ts';

export interface LastCopiesOptions {
  readonly client: Pick<LinkClient, 'isLinked' | 'completeUntil'>;
  readonly memory: StandingMemory;
  /** How long a right to write lasts without a renewal, milliseconds. */
  readonly leaseMs: number;
  readonly logger: Logger;
  elapsed(): number;
  /** Milliseconds since the epoch. */
  now(): number;
}

export interface LastCopies {
  /** The database has said who writes, or that nobody does; or an instance that writes has answered. */
  reached(): void;
  /** The database could not be asked, or takes no changes, so that nobody can write. */
  missed(): void;
}

export function createLastCopies(options: LastCopiesOptions): LastCopies {
  const { client, memory, leaseMs, logger, elapsed, now } = options;
  let reachedAt = elapsed();
  let isServing = false;

  return {
    reached() {
      reachedAt = elapsed();
      if (!isServing) return;
      isServing = false;
      noteStale(memory, null);
      logger.write('INFO', 'link', 'The database, or an instance that writes, is reached again');
    },
    missed() {
      if (isServing || client.isLinked()) return;
      const until = client.completeUntil();
      // Anyone who wrote when something was last heard may still have the right to.
      if (until === null || elapsed() - Math.max(until, reachedAt) < leaseMs) return;
      isServing = true;
      const since = now() - (elapsed() - until);
      noteStale(memory, since);
      const problem =
        'Neither a database that takes changes nor an instance that writes is reached';
      const served = `signed documents are served as they were at ${formatInstant(since)}`;
      logger.write('WARNING', 'link', `${problem}: ${served}, and nothing else`);
    },
  };
}
