/** Serves HTTP: one edge on the thread of the authority, or several on threads of their own. */

import type { Logger } from '../base/log/logger.ts';
import type { EdgeRuntime } from '../base/runtime.ts';
import type { DrainState, Edge } from '../edge/edge.ts';
import { type EdgeConfig, edgeSettings } from '../edge/edge-config.ts';
import { eventReadersOf } from '../edge/event-readers.ts';
import { freePort } from '../edge/free-port.ts';
import type { Instance } from '../edge/instance.ts';
import { createEdgeMetrics } from '../edge/metrics.ts';
import { LIVE_RENDERERS } from '../edge/routes/live-renderers.ts';
import { ROUTES } from '../edge/routes/table.ts';
import { listen } from '../edge/server.ts';
import { createUnprovenBodies } from '../edge/unproven-bodies.ts';
import { notFoundPages } from '../pages/not-found.ts';
import type { CommandReference } from '../pages/reference/command-reference.ts';
import { standingIn } from '../protocol/contract/instance-status.ts';
import { createDocumentCache } from '../protocol/contract/publications.ts';
import { connectionsPerThread } from './config/descriptors.ts';
import type { Config } from './config/load.ts';
import { isAuthoritySilent } from './threads/beats.ts';
import {
  type EdgeHost,
  type Edges,
  type EdgeThread,
  serveOnThreads,
} from './threads/edge-threads.ts';

export interface Front extends Edges {
  readonly port: number;
}

export interface FrontOptions {
  readonly config: Config;
  readonly instance: Instance;
  readonly commands: CommandReference;
  readonly runtime: EdgeRuntime;
  readonly logger: Logger;
  readonly host: EdgeHost;
  /** None when the thread of the authority serves. */
  readonly threads: readonly EdgeThread[];
}

/** Resolves when requests are served. */
export async function openFront(options: FrontOptions): Promise<Front> {
  const { config, instance, commands, host, threads } = options;
  const edgeConfig = edgeConfigOf(config, instance, commands);
  const port = await freePort(config.host, config.port);
  if (threads.length === 0) return serveHere(options, edgeConfig, port);
  return { port, ...(await serveOnThreads(threads, host, edgeConfig, port)) };
}

async function serveHere(
  { runtime, logger, host }: FrontOptions,
  config: EdgeConfig,
  port: number,
): Promise<Front> {
  const { call, publisher, limits, viewers, exposition, beats, instanceStatus } = host;
  const documents = createDocumentCache(publisher.versions);
  const metrics = createEdgeMetrics();
  const draining: DrainState = { isAnnounced: false, refusesWork: false };
  const settings = edgeSettings(config, documents);
  publisher.follow(documents.take);
  const edge: Edge = {
    settings,
    call,
    documents,
    revisionEnds: publisher.revisionEnds,
    limits,
    unprovenBodies: createUnprovenBodies(),
    liveRenderers: LIVE_RENDERERS,
    notFoundPage: notFoundPages(settings.genesis.network_name),
    eventReaders: eventReadersOf(config, { call, runtime, metrics, logger }),
    viewers,
    runtime,
    logger,
    metrics,
    exposition: async () => exposition([await metrics.report()]),
    isAuthoritySilent: () => isAuthoritySilent(beats),
    instanceStatus: instanceStatus && standingIn(instanceStatus),
    startedAt: runtime.elapsed(),
    routes: ROUTES,
    draining,
  };
  const server = listen(edge, ROUTES, { host: config.host, port, tls: config.tls });
  return {
    port: server.port,
    async announce() {
      draining.isAnnounced = true;
    },
    drain() {
      draining.refusesWork = true;
      return server.drain();
    },
    cut: async () => server.dropUploads(),
    close: async () => server.close(),
    abandon: async () => server.close(),
    useTls: server.useTls,
    settle: () => Promise.resolve(),
    barrier: server.barrier,
  };
}

function edgeConfigOf(config: Config, instance: Instance, commands: CommandReference): EdgeConfig {
  return {
    host: config.host,
    tls: config.tls,
    instance,
    genesis: config.genesis,
    publicUrl: config.publicUrl,
    proxyHops: config.proxyHops,
    corsOrigins: config.corsOrigins,
    maxRequestBytes: config.maxRequestBytes,
    maxConnections: connectionsPerThread(config.threads),
    longestWaitMs: config.longestWaitMs,
    maxEventReaders: Math.ceil(config.eventReaders / config.threads),
    maxFeedEntries: config.maxFeedEntries,
    createdStatus: config.createdStatus,
    rolePrefixes: config.rolePrefixes,
    operatorKeys: config.operators.map(({ keyId, publicKey }) => [keyId, publicKey] as const),
    acceptSignatureV1: config.acceptSignatureV1,
    naPublicKey: config.publicKey,
    clockTolerance: config.clockTolerance,
    rateLimits: config.rateLimits,
    logLevel: config.logLevel,
    logFormat: config.logFormat,
    commands,
  };
}
