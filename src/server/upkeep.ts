/** The periodic work of every instance, active or not: clock, disk, TLS pair and live pages. */

import { type HostStatus, hasRoom } from '../authority/host-status.ts';
import type { Clock } from '../base/clock.ts';
import { messageOf } from '../base/error-message.ts';
import type { Logger } from '../base/log/logger.ts';
import { readTlsPair, type TlsPair } from '../base/tls/pair.ts';
import type { Config } from './config/load.ts';
import type { Background } from './lifecycle/background.ts';
import { freeSpace } from './lifecycle/system-limits.ts';
import type { AuthorityMetrics } from './metrics/authority.ts';
import type { EdgeHost, Edges } from './threads/edge-threads.ts';

export interface UpkeepOptions {
  readonly config: Config;
  readonly clock: Pick<Clock, 'check' | 'skew'>;
  /** Receives the periodic measurements. */
  readonly hostStatus: HostStatus & { diskFree: number | null; tlsNotAfter: number | null };
  readonly host: Pick<EdgeHost, 'shared' | 'call'>;
  readonly edges: Pick<Edges, 'useTls'>;
  readonly logger: Logger;
  readonly metrics: Pick<AuthorityMetrics, 'clockSkewed' | 'tlsNotAfter'>;
  now(): number;
}

const CLOCK_CHECK_MS = 1000;
/** Short enough that little can be written between two checks, relative to the reserve that `minFree` keeps. */
const DISK_CHECK_MS = 1000;
/** How soon a new certificate is used; each check reads two small files. */
const TLS_RELOAD_MS = 10_000;
/** Live pages are updated at most this often. */
const LIVE_REFRESH_MS = 500;

const NO_ROOM =
  'Less than MESH_MIN_FREE_MB is free on the disk of the state: invites, joins and new agents are refused';

export function beginUpkeep(background: Background, options: UpkeepOptions): void {
  const { clock, metrics } = options;
  background.start('live_refresh', LIVE_REFRESH_MS, () => refreshLivePages(options.host));
  background.start('clock_check', CLOCK_CHECK_MS, () => {
    clock.check();
    metrics.clockSkewed(clock.skew());
  });
  background.start('disk_check', DISK_CHECK_MS, () => checkDisk(options));
  const { tls } = options.config;
  if (tls !== null) background.start('tls_reload', TLS_RELOAD_MS, tlsReload(options, tls));
}

async function checkDisk({ config, hostStatus, logger }: UpkeepOptions): Promise<void> {
  const had = hasRoom({ hostStatus: () => hostStatus });
  hostStatus.diskFree = await freeSpace(config.dataDir);
  const has = hasRoom({ hostStatus: () => hostStatus });
  if (had && !has) logger.write('ERROR', 'store', NO_ROOM);
  if (!had && has)
    logger.write('INFO', 'store', 'There is enough disk space again: nodes may be enrolled');
}

/**
 * Keeps the served TLS pair up to date with its files: a new pair is used once it has been checked, and the last good
 * one until then.
 */
function tlsReload(
  { hostStatus, edges, logger, metrics, now }: UpkeepOptions,
  first: TlsPair,
): () => Promise<void> {
  let current = first;
  /** Files are read every few seconds: each problem is logged once. */
  let loggedProblem: string | null = null;
  metrics.tlsNotAfter(first.notAfter);

  return async () => {
    try {
      const pair = readTlsPair(current, now());
      loggedProblem = null;
      if (pair.digest === current.digest) return;
      await edges.useTls(pair);
      current = pair;
      hostStatus.tlsNotAfter = pair.notAfter;
      metrics.tlsNotAfter(pair.notAfter);
      const until = new Date(pair.notAfter).toISOString();
      const text = `New connections use the new certificate, valid until ${until}`;
      logger.write('INFO', 'tls', text);
    } catch (cause) {
      const problem = messageOf(cause);
      if (problem === loggedProblem) return;
      loggedProblem = problem;
      const until = new Date(current.notAfter).toISOString();
      const kept = `The previous pair stays in use; its certificate is valid until ${until}`;
      logger.write('ERROR', 'tls', `${problem}. ${kept}`);
    }
  };
}

/** Rebuilds outdated documents of live pages while there are viewers. */
async function refreshLivePages({ shared, call }: UpkeepOptions['host']): Promise<void> {
  if (Atomics.load(shared.viewers, 0) === 0) return;
  await Promise.all([call('refreshDashboard', null), call('refreshGraph', null)]);
}
