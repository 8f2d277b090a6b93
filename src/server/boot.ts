/**
 * The composition root: an instance is prepared, serves, and stops, and each step returns what the next one needs.
 * While it serves, periodic work runs that every instance does.
 */

import { setTimeout as delay } from 'node:timers/promises';
import { problemText } from '../base/error-message.ts';
import type { Instance } from '../edge/edge-config.ts';
import type { MetricsReport } from '../edge/metrics.ts';
import { type Call, UNAVAILABLE } from '../protocol/contract/calls.ts';
import type { RefusalName } from '../protocol/refusals.ts';
import { databaseOf } from '../store/open.ts';
import { type BootOptions, createBase } from './base.ts';
import type { Config } from './config/load.ts';
import { type Front, openFront } from './front.ts';
import type { StopPatience, StopSteps } from './lifecycle/lifecycle.ts';
import type { AuthorityMetrics } from './metrics/authority.ts';
import type { AuthorityCounts } from './metrics/state.ts';
import { type Prepared, prepare } from './prepare.ts';
import { createTerms, type Terms } from './standby.ts';
import type { EdgeHost } from './threads/edge-threads.ts';
import { beginUpkeep } from './upkeep.ts';

export type RunningAuthority = Awaited<ReturnType<typeof startAuthority>>;

export async function startAuthority(config: Config, options: BootOptions) {
  const prepared = await prepare(createBase(config, options));
  const { logger, lifecycle, background, fatal, signer, instances } = prepared;
  let edges: Front | null = null;
  let opened: (front: Front) => void = () => undefined;
  const front = new Promise<Front>((resolve) => {
    opened = (found) => {
      edges = found;
      resolve(found);
    };
  });
  try {
    const terms = createTerms(prepared, front);
    const first = await terms.first();
    const serving = await serve(prepared, terms, opened);
    const taking = first === null ? terms.standByAndTake() : null;
    await first?.begin(background);
    // A start may last longer than the lease, until its next renewal.
    await instances.opening.opened?.lease?.heldSince(options.runtime.elapsed());
    taking?.catch((cause) => {
      if (lifecycle.state === 'serving') fatal('taking over', cause);
    });
    for (const warning of config.warnings) logger.write('WARNING', 'config', warning);
    const steps = stopSteps(prepared, serving, taking);
    return {
      port: serving.edges.port,
      logger,
      /** The key that signs, which the state may name instead of the configuration. */
      key: { publicKey: signer.publicKey, keyId: signer.keyId },
      /** Runs a periodic job now instead of at its next interval; rejects if it fails, or if it does not run here. */
      runJob: background.runNow,
      /** Resolves when everything that the edges have sent so far, log lines in particular, has arrived. */
      settle: serving.edges.settle,
      /** Ends the process because of an uncaught failure. */
      fatal,
      /** Refuses new requests, finishes those in flight, flushes, and releases the store. */
      stop: (patience: StopPatience = AT_ONCE): Promise<void> => lifecycle.stop(steps, patience),
    };
  } catch (cause) {
    // What cannot end, such as a request to a database that does not answer, must not hide the cause.
    const failed = (problem: unknown) =>
      logger.write('ERROR', 'server', `The end of a failed start: ${problemText(problem)}`);
    const end = endFailedStart(prepared, edges).catch(failed);
    await Promise.race([end, delay(ABANDON_MS, undefined, { ref: false })]);
    throw cause;
  }
}

/** `taking` is the time as a standby; null if it was active from the start. */
function stopSteps(
  { instances, place, background, fatal, pulse, watchdog, signer }: Prepared,
  { edges, history }: Serving,
  taking: Promise<void> | null,
): StopSteps {
  return {
    announce: edges.announce,
    drain: edges.drain,
    cut: edges.cut,
    async flush() {
      instances.opening.giveUp();
      await taking?.catch(() => undefined);
      place.role.endReaders();
      await background.stop();
      await history.finish();
      await place.role.close();
    },
    overrun() {
      // Otherwise the lease would be renewed for as long as the process lives.
      if (instances.instanceStatus !== null) fatal('stop', new Error(OVERRUN));
    },
    async close() {
      await instances.close();
      await edges.close();
      pulse.end();
      await Promise.all([watchdog.end(), signer.close()]);
    },
  };
}

/** Ends what a start has begun. `edges` is null if it has not come to serving. */
async function endFailedStart(prepared: Prepared, edges: Front | null): Promise<void> {
  const { place, instances, pulse, background, threads, watchdog, signer } = prepared;
  place.role.seal();
  place.role.endReaders();
  instances.opening.giveUp();
  await instances.close();
  await edges?.abandon();
  pulse.end();
  await background.stop();
  await place.role.abandon();
  await Promise.all([...threads.map((thread) => thread.end()), watchdog.end(), signer.close()]);
}

/** How long a start that failed may take to end what it has begun. */
const ABANDON_MS = 10_000;

const OVERRUN =
  'Data that is only in memory could not be stored in time; this process exits so that another instance can take over';

const AT_ONCE: StopPatience = { announceMs: 0, hurry: new AbortController().signal };

type Serving = Awaited<ReturnType<typeof serve>>;

/** `opened` is called once there are edges. */
async function serve(prepared: Prepared, terms: Terms, opened: (front: Front) => void) {
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
      if (copy.path === '/crl' && copy.document !== null) terms.passedOn(copy.document);
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
