/**
 * An edge on a thread of its own: HTTP, parsing, schemas, signatures, public documents and stateless
 * verification. Everything it knows about the state comes from the authority.
 */
import { parentPort } from 'node:worker_threads';
import { anchoredTime } from '../../base/clock.ts';
import { createLogger } from '../../base/log/logger.ts';
import { problemText } from '../../base/log/problem.ts';
import { type EdgeRuntime, systemRuntime, timeOf, withClocks } from '../../base/runtime.ts';
import type { DrainState, Edge } from '../../edge/edge.ts';
import { edgeSettings } from '../../edge/edge-config.ts';
import { eventReadersOf } from '../../edge/event-readers.ts';
import { createEdgeMetrics } from '../../edge/metrics.ts';
import { LIVE_RENDERERS } from '../../edge/routes/live-renderers.ts';
import { ROUTES } from '../../edge/routes/table.ts';
import { listen, type Server } from '../../edge/server.ts';
import { createUnprovenBodies } from '../../edge/unproven-bodies.ts';
import { notFoundPages } from '../../pages/not-found.ts';
import { standingIn } from '../../protocol/contract/instance-status.ts';
import { type AuthorityLink, createAuthorityLink } from './authority-link.ts';
import { isAuthoritySilent, startBeating } from './beats.ts';
import type { EdgeProcedures, FromEdge, Service, SharedState, ToEdge } from './messages.ts';
import { answerCall } from './rpc.ts';

interface Serving {
  readonly link: AuthorityLink;
  readonly edge: Edge;
  readonly server: Server;
  readonly draining: DrainState;
  stopBeating(): void;
}

const port = parentPort;
if (port === null) throw new Error('An edge runs as a worker thread');
let current: Serving | null = null;

const PROCEDURES: EdgeProcedures = {
  serve,
  announce() {
    serving().draining.isAnnounced = true;
  },
  async drain() {
    const { draining, server, link } = serving();
    draining.refusesWork = true;
    await server.drain();
    link.flush();
  },
  cut: () => serving().server.dropUploads(),
  close() {
    // Ending the thread with an open app would abort the process.
    current?.server.close();
    current?.stopBeating();
    current = null;
  },
  useTls: (files) => serving().server.useTls(files),
  report: () => serving().edge.metrics.report(),
  flush: () => serving().link.flush(),
  barrier: () => serving().server.barrier(),
};

// Not caught, it would end the thread, and ending a thread with an open app aborts the process.
process.on('uncaughtException', (cause) => {
  if (current !== null) current.draining.refusesWork = true;
  post({ type: 'failed', problem: problemText(cause) });
});

port.on('message', (message: ToEdge) => {
  if (message.type === 'call') void answerCall(PROCEDURES, message, post);
  else if (message.type === 'exit') port.close();
  else current?.link.take(message);
});

function post(message: FromEdge): void {
  port?.postMessage(message);
}

function serving(): Serving {
  if (current === null) throw new Error('The edge does not serve');
  return current;
}

async function serve({ config, port: httpPort, slot, shared }: Service): Promise<void> {
  const link = createAuthorityLink(post, shared, config.rateLimits);
  const runtime = runtimeOf(shared);
  const { logLevel: level, logFormat: format } = config;
  const draining: DrainState = { isAnnounced: false, refusesWork: false };
  const settings = edgeSettings(config, link.documents);
  const logger = createLogger({
    level,
    format,
    destination: { write: link.log },
    now: runtime.now,
  });
  const metrics = createEdgeMetrics();
  const edge: Edge = {
    settings,
    call: link.call,
    documents: link.documents,
    revisionEnds: shared.revisionEnds,
    limits: link.limits,
    unprovenBodies: createUnprovenBodies(),
    liveRenderers: LIVE_RENDERERS,
    notFoundPage: notFoundPages(settings.genesis.network_name),
    eventReaders: eventReadersOf(config, { call: link.call, runtime, metrics, logger }),
    viewers: shared.viewers,
    runtime,
    logger,
    metrics,
    exposition: link.exposition,
    isAuthoritySilent: () => isAuthoritySilent(shared.beats),
    instanceStatus: shared.instanceStatus && standingIn(shared.instanceStatus),
    startedAt: runtime.elapsed(),
    routes: ROUTES,
    draining,
  };
  const server = listen(edge, ROUTES, { host: config.host, port: httpPort, tls: config.tls });
  const stopBeating = startBeating(shared.beats, slot);
  current = { link, edge, server, draining, stopBeating };
}

function runtimeOf({ clock, manualTime }: SharedState): EdgeRuntime {
  return withClocks(systemRuntime, timeOf(manualTime), anchoredTime(clock));
}
