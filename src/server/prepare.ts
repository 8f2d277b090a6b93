/** Opens everything that an instance needs before it serves: its keys, its place among instances, and its threads. */

import type { AuthoritySigner } from '../base/signer/authority-signer.ts';
import { createRateLimits } from '../edge/limits/rate-limit.ts';
import { createRequestQueue } from '../edge/limits/request-queue.ts';
import { instantOf } from '../protocol/records/record.ts';
import type { Base } from './base.ts';
import { joinInstances } from './instances.ts';
import { freeSpace } from './lifecycle/system-limits.ts';
import { openServiceSigner } from './service-signer.ts';
import { AUTHORITY_SLOT, createBeats, createPulse } from './threads/beats.ts';
import type { EdgeThread } from './threads/edge-threads.ts';

export type Prepared = Awaited<ReturnType<typeof prepare>>;

/** Rejects with a one-sentence error, after closing what was opened. */
export async function prepare(base: Base) {
  const { config, options, runtime, publisher, logger, metrics, fatal } = base;
  const { elapsed } = options.runtime;
  const instanceId = runtime.uuid();
  const beats = createBeats(config.threads === 1 ? 0 : config.threads);
  const pulse = createPulse(beats, AUTHORITY_SLOT);
  const queue = createRequestQueue({
    longestWaitMs: config.edge.longestWaitMs,
    elapsed: runtime.elapsed,
    schedule: setImmediate,
    progress: pulse.beat,
  });
  const signer = await openServiceSigner({ config, logger, metrics, fatal, elapsed });
  const instances = await joinInstances({
    config,
    instanceId,
    signer,
    publisher,
    logger,
    metrics,
    runtime: options.runtime,
    gateFailed: (cause) => fatal('gate thread', cause),
    lost: (problem) => fatal('ownership', new Error(problem)),
  }).catch(async (cause) => {
    await signer.close();
    throw cause;
  });
  base.silencers.push(instances.close);
  return {
    ...base,
    instanceId,
    limits: createRateLimits(config.edge.rateLimits),
    beats,
    pulse,
    queue,
    signer,
    instances,
    // The threads load their modules while the state is being read.
    threads: startThreads(base),
    watchdog: options.startWatchdog({ beats, log: config.log }, (cause) =>
      fatal('watchdog thread', cause),
    ),
    hostStatus: await hostStatusOf(base, signer, instances),
  };
}

function startThreads({ config: { threads }, options, fatal }: Base): EdgeThread[] {
  const start = (index: number) =>
    options.startThread((cause) => fatal(`edge thread ${index + 1}`, cause));
  return threads === 1 ? [] : Array.from({ length: threads }, (_, index) => start(index));
}

/** What the authority knows of this process and its machine. */
async function hostStatusOf(
  { config, place, genesis }: Base,
  signer: AuthoritySigner,
  instances: Awaited<ReturnType<typeof joinInstances>>,
) {
  return {
    diskFree: await freeSpace(config.dataDir),
    minFree: config.minFree,
    tlsNotAfter: config.tls?.notAfter ?? null,
    get delegatedUntil() {
      return instantOf(genesis().network_authority.valid_to);
    },
    get backup() {
      return place.role.backupFacts();
    },
    get webhooks() {
      return place.role.webhooks();
    },
    get partners() {
      return place.role.partners();
    },
    get signs() {
      return signer.isAvailable();
    },
    get instances() {
      return instances.rows();
    },
    instancesWithout: (publicKey: string) =>
      instances.standbys().filter(({ nextKey }) => nextKey !== publicKey).length,
  };
}
