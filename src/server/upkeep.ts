/** The periodic work of every instance, whether it is the writer or not: clock, disk, TLS pair and live pages. */

import type { HostStatus } from '../authority/derived/host-status.ts';
import { hasRoom } from '../authority/engine/room.ts';
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/log/logger.ts';
import { createTlsReload } from '../base/tls/reload.ts';
import type { Config } from './config/load.ts';
import type { Background, Job } from './lifecycle/background.ts';
import { freeSpace } from './lifecycle/free-space.ts';
import type { AuthorityMetrics } from './metrics/authority.ts';
import type { EdgeHost, Edges } from './threads/edge-threads.ts';

export interface UpkeepOptions {
  readonly config: Config;
  readonly clock: Pick<Clock, 'check' | 'skew'>;
  /** Receives the periodic measurements. */
  readonly hostStatus: HostStatus & { diskFree: number | null; tlsNotAfter: number | null };
  readonly host: Pick<EdgeHost, 'viewers' | 'call'>;
  readonly edges: Pick<Edges, 'useTls'>;
  readonly logger: Logger;
  readonly metrics: Pick<AuthorityMetrics, 'clockSkewed' | 'tlsNotAfter'>;
  now(): number;
}

export interface Upkeep {
  readonly checkClock: Job;
  readonly checkDisk: Job;
  /** Null without TLS. */
  readonly reloadTls: Job | null;
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

export function beginUpkeep(background: Background, options: UpkeepOptions): Upkeep {
  const { clock, metrics } = options;
  background.start('live_refresh', LIVE_REFRESH_MS, () => refreshLivePages(options.host));
  return {
    checkClock: background.start('clock_check', CLOCK_CHECK_MS, () => {
      clock.check();
      metrics.clockSkewed(clock.skew());
    }),
    checkDisk: background.start('disk_check', DISK_CHECK_MS, () => checkDisk(options)),
    reloadTls: reloadingTls(background, options),
  };
}

async function checkDisk({ config, hostStatus, logger }: UpkeepOptions): Promise<void> {
  const had = hasRoom({ hostStatus: () => hostStatus });
  hostStatus.diskFree = await freeSpace(config.dataDir);
  const has = hasRoom({ hostStatus: () => hostStatus });
  if (had && !has) logger.write('ERROR', 'store', NO_ROOM);
  if (!had && has)
    logger.write('INFO', 'store', 'There is enough disk space again: nodes may be enrolled');
}

function reloadingTls(background: Background, options: UpkeepOptions): Job | null {
  const { config, hostStatus, edges, logger, metrics, now } = options;
  if (config.tls === null) return null;
  metrics.tlsNotAfter(config.tls.notAfter);
  const { check } = createTlsReload({
    first: config.tls,
    logger,
    now,
    use: edges.useTls,
    used({ notAfter }) {
      hostStatus.tlsNotAfter = notAfter;
      metrics.tlsNotAfter(notAfter);
    },
  });
  return background.start('tls_reload', TLS_RELOAD_MS, check);
}

/** Rebuilds outdated documents of live pages while there are viewers. */
async function refreshLivePages({ viewers, call }: UpkeepOptions['host']): Promise<void> {
  if (Atomics.load(viewers, 0) === 0) return;
  await Promise.all([call('refreshDashboard', null), call('refreshGraph', null)]);
}
