/** Serves HTTP, and begins the periodic work that every instance does. */

import type { Instance } from '../edge/edge-config.ts';
import type { MetricsReport } from '../edge/metrics.ts';
import { type Call, UNAVAILABLE } from '../protocol/contract/calls.ts';
import type { RefusalName } from '../protocol/refusals.ts';
import { databaseOf } from '../store/open.ts';
import type { Config } from './config/load.ts';
import { type Front, openFront } from './front.ts';
import type { AuthorityMetrics } from './metrics/authority.ts';
import type { AuthorityCounts } from './metrics/state.ts';
import type { Prepared } from './prepare.ts';
import type { Terms } from './standby.ts';
import type { EdgeHost } from './threads/edge-threads.ts';
import { beginUpkeep } from './upkeep.ts';

export type Serving = Awaited<ReturnType<typeof serve>>;

/** `opened` is called once there are edges. */
export async function serve(prepared: Prepared, terms: Terms, opened: (front: Front) => void) {
  const { config, options, runtime, logger, instances, silencers, lifecycle, pulse } = prepared;
  const host = hostOf(prepared, terms, (copy) => void edges.keepCopy(copy));
  // If the thread started later, it might find no free file descriptor to load its modules.
  await prepared.watchdog.ready;
  const instance = {
    id: prepared.instanceId,
    database: databaseOf(config.database),
    signingKeyId: config.keyId,
    haMode: haModeOf(config),
  };
  const { commands } = options;
  const { threads } = prepared;
  const edges = await openFront({ config, instance, commands, runtime, logger, host, threads });
  silencers.push(edges.abandon);
  opened(edges);
  instances.follow(edges.forwardTo);
  pulse.begin();
  lifecycle.enter('serving');
  return { edges, history: beginUpkeep(prepared, host, edges) };
}

function haModeOf({ database, link }: Config): Instance['haMode'] {
  if (database === null) return 'single';
  return link === null ? 'standby' : 'linked';
}

/** What edges need of the rest of the process. */
function hostOf(prepared: Prepared, terms: Terms, keepCopy: Front['keepCopy']): EdgeHost {
  const { queue, publisher, limits, clock, beats, instances, options, metrics, place } = prepared;
  const { instanceStatus } = instances;
  return {
    call: instances.call,
    queue,
    publisher,
    limits,
    shared: {
      documentVersions: publisher.versions,
      revisionEnds: publisher.revisionEnds,
      viewers: new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)),
      clock: clock.anchor,
      manualTime: options.manualTime,
      beats,
      instanceStatus: instanceStatus?.memory ?? null,
    },
    socketFolder: instances.socketFolder,
    copied(copy) {
      if (copy.path === '/crl') terms.passedOn(copy.document);
      keepCopy(copy);
    },
    log: (lines) => options.destination.write(lines),
    exposition(reports) {
      if (instanceStatus !== null) {
        const remaining = instances.leaseRemaining();
        metrics.instances().instanceStatus(instanceStatus, instances.standbys(), remaining);
      }
      // Only the active instance reports the counts, so that they appear once.
      return exposition(place.role.call ?? (() => UNAVAILABLE), metrics, reports);
    },
  };
}

async function exposition(
  call: Call,
  metrics: AuthorityMetrics,
  reports: readonly MetricsReport[],
): Promise<string> {
  const answer = await call('readCounts', null);
  if (answer.ok) return metrics.exposition(JSON.parse(answer.json) as AuthorityCounts, reports);
  if (UNCOUNTED.has(answer.refusal)) return metrics.exposition(answer.refusal, reports);
  throw new Error(`The counts cannot be read: ${answer.refusal}`);
}

/** The state was rolled back, or another instance is active. */
const UNCOUNTED: ReadonlySet<RefusalName> = new Set(['restore_pending', 'authority_unavailable']);
