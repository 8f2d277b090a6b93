/** Serves HTTP with one edge on the authority's thread, or with several, each on its own thread. */
import type { Logger } from '../base/log/logger.ts';
import type { EdgeRuntime } from '../base/runtime.ts';
import type { EdgeConfig, Instance } from '../edge/edge-config.ts';
import { freePort } from '../edge/http/free-port.ts';
import type { CommandReference } from '../pages/reference/cli-reference.ts';
import { createDocumentCache } from '../protocol/contract/documents.ts';
import type { Config } from './config/load.ts';
import { openFileLimit } from './lifecycle/system-limits.ts';
import {
  type EdgeHost,
  type Edges,
  type EdgeThread,
  serveOnThreads,
  socketIn,
} from './threads/edge-threads.ts';
import { serveEdge } from './threads/serving-edge.ts';

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
  /** Empty if the authority's thread serves. */
  readonly threads: readonly EdgeThread[];
}

/** Resolves once requests are served. */
export async function openFront(options: FrontOptions): Promise<Front> {
  const { config, instance, commands, host, threads } = options;
  const edgeConfig = edgeConfigOf(config, instance, commands);
  const port = await freePort(config.edge.host, config.port);
  if (threads.length === 0) return serveHere(options, edgeConfig, port);
  return { port, ...(await serveOnThreads(threads, host, edgeConfig, port)) };
}

function serveHere(
  { runtime, logger, host }: FrontOptions,
  config: EdgeConfig,
  port: number,
): Front {
  const { call, queue, publisher, limits, shared } = host;
  const documents = createDocumentCache(publisher.versions);
  publisher.follow(documents.take);
  const edge = serveEdge(config, port, {
    call,
    queue,
    documents,
    revisionEnds: shared.revisionEnds,
    limits,
    viewers: shared.viewers,
    runtime,
    logger,
    // The thread that answers is that of the authority.
    isAuthoritySilent: () => false,
    instanceStatus: shared.instanceStatus,
    socketPath: socketIn(host, 0),
    share: host.copied,
    exposition: async (report) => host.exposition([await report()]),
  });
  return {
    ...edge,
    abandon: edge.close,
    reports: async () => [await edge.report()],
    settle: () => Promise.resolve(),
  };
}

function edgeConfigOf(config: Config, instance: Instance, commands: CommandReference): EdgeConfig {
  const { threads, link } = config;
  return {
    ...config.edge,
    instance,
    tls: config.tls,
    genesis: config.genesis,
    log: config.log,
    clockTolerance: config.authority.clockTolerance,
    holdMs: link?.holdMs ?? 0,
    maxConnections: connectionsPerThread(threads, link !== null),
    maxEventReaders: Math.ceil(config.eventReaders / threads),
    operatorKeys: config.operators.map(({ keyId, publicKey }) => [keyId, publicKey] as const),
    naPublicKey: config.publicKey,
    commands,
  };
}

/** File descriptors reserved for everything other than connections: the store, the log, threads, event loops. */
const RESERVED = 128;

/**
 * How many connections each of `threads` threads can hold within the process's limit on file descriptors. If instances
 * forward to each other, each connection may need another one.
 */
export function connectionsPerThread(threads: number, isLinked = false): number {
  const limit = openFileLimit('self') ?? Number.POSITIVE_INFINITY;
  const available = Math.max(RESERVED, limit - RESERVED) / (isLinked ? 2 : 1);
  return Math.max(1, Math.floor(available / threads));
}
