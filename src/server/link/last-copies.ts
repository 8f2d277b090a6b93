/**
 * Decides when to serve the last copies of signed documents even though they may be outdated: when this instance has
 * reached neither the writer nor a writable database for so long that every lease it knows of has expired [link-6].
 *
 * The instance cannot distinguish a database that is down from one that only this instance cannot reach. So each copy states
 * since when it may be outdated, and an instance that reaches the database but not the writer serves no copies.
 */

import type { Logger } from '../../base/log/logger.ts';
import { formatInstant } from '../../base/timestamp.ts';
import { type InstanceStatusMemory, noteStale } from '../../protocol/contract/instance-status.ts';
import type { LinkClient } from './client.ts';

export interface LastCopiesOptions {
  readonly client: Pick<LinkClient, 'isLinked' | 'completeUntil'>;
  readonly memory: InstanceStatusMemory;
  /** How long a lease lasts without renewal, milliseconds. */
  readonly leaseMs: number;
  readonly logger: Logger;
  elapsed(): number;
  /** Milliseconds since the epoch. */
  now(): number;
}

export interface LastCopies {
  /** Call when the database has reported the writer, or that there is none, or when a writer has answered. */
  reached(): void;
  /** Call when the database is unreachable or read-only, so that there can be no writer. */
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
      logger.write('INFO', 'link', 'The database or a writer can be reached again');
    },
    missed() {
      if (isServing || client.isLinked()) return;
      const until = client.completeUntil();
      // The last known writer may still hold a valid lease.
      if (until === null || elapsed() - Math.max(until, reachedAt) < leaseMs) return;
      isServing = true;
      const since = now() - (elapsed() - until);
      noteStale(memory, since);
      const problem = 'Neither a writable database nor a writer can be reached';
      const served = `signed documents are served as of ${formatInstant(since)}`;
      logger.write('WARNING', 'link', `${problem}: ${served}, and all other requests are refused`);
    },
  };
}
