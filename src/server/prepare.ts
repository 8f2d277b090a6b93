/** Opens everything that an instance needs before it serves: its keys, its place among instances, and its threads. */

import { signerFromSeed } from '../base/crypto/ed25519.ts';
import {
  type AuthoritySigner,
  createAuthoritySigner,
  heldHere,
} from '../base/signer/authority-signer.ts';
import { createRateLimits } from '../edge/limits/rate-limit.ts';
import { createRequestQueue } from '../edge/limits/request-queue.ts';
import { instantOf } from '../protocol/records/record.ts';
import type { Base } from './base.ts';
import { joinInstances } from './instances.ts';
import { freeSpace } from './lifecycle/system-limits.ts';
import { AUTHORITY_SLOT, createBeats, createPulse } from './threads/beats.ts';
import type { EdgeThread } from './threads/edge-threads.ts';
import { startSignerThread } from './threads/signer-thread.ts';

export type Prepared = Awaited<ReturnType<typeof prepare>>;

/** Rejects with a one-sentence error, after closing what was opened. */
export async function prepare(base: Base) {
  const { config, options, runtime, publisher, logger, metrics, fatal } = base;
  const instanceId = runtime.uuid();
  const beats = createBeats(config.threads === 1 ? 0 : config.threads);
  const pulse = createPulse(beats, AUTHORITY_SLOT);
  const queue = createRequestQueue({
    longestWaitMs: config.edge.longestWaitMs,
    elapsed: runtime.elapsed,
    schedule: setImmediate,
    progress: pulse.beat,
  });
  const signer = await openServiceSigner(base);
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

/** Resolves when the signer is available. Failures of a separate signer process are logged and counted. */
async function openServiceSigner({ config, options, logger, metrics, fatal }: Base) {
  const source = config.keySource();
  if (source.kind === 'seeds') return createAuthoritySigner(heldHere(signersHere), config);
  const who = `The signer at unix:${source.path}`;
  const address = { path: source.path, publicKeys: [config.publicKey] };
  const holder = await startSignerThread(address, {
    available: () => logger.write('INFO', 'signer', `${who} signs`),
    unavailable: (problem) => logger.write('ERROR', 'signer', `${who} does not sign: ${problem}`),
    refused: (problem) => logger.write('ERROR', 'signer', `${who} refuses: ${problem}`),
    asked: metrics.signed,
    failed: (cause) => fatal('signer thread', cause),
    elapsed: options.runtime.elapsed,
  });
  return createAuthoritySigner(holder, config);

  /** The next key may be created while the service runs. */
  function signersHere() {
    const now = config.keySource();
    return now.kind === 'seeds' ? now.seeds.map((seed) => signerFromSeed(Buffer.from(seed))) : [];
  }
}
