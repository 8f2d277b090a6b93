/**
 * An edge on a thread of its own: HTTP, parsing, schemas, signatures, public documents and stateless
 * verification. All it knows of the state comes from the authority.
 */
import { parentPort } from 'node:worker_threads';
import { anchoredTime } from '../clock.ts';
import type { DrainState, Edge } from '../http/edge.ts';
import { edgeSettings } from '../http/edge-config.ts';
import { listen, type Server } from '../http/server.ts';
import { createLogger } from '../log/logger.ts';
import { createEdgeMetrics } from '../metrics.ts';
import { LIVE_RENDERERS } from '../pages/live-renderers.ts';
import { ROUTES } from '../routes/table.ts';
import { type Runtime, systemRuntime, timeOf } from '../runtime.ts';
import { type AuthorityLink, createAuthorityLink } from './authority-link.ts';
import type { FromEdge, Serve, SharedState, ToEdge } from './messages.ts';

interface Serving {
  readonly link: AuthorityLink;
  readonly edge: Edge;
  readonly server: Server;
  readonly draining: DrainState;
}

const port = parentPort;
if (port === null) throw new Error('An edge runs as a worker thread');
let serving: Serving | null = null;

port.on('message', (message: ToEdge) => {
  void handle(message).catch((cause: unknown) => {
    post({ type: 'failed', problem: cause instanceof Error ? cause.message : String(cause) });
  });
});

function post(message: FromEdge): void {
  port?.postMessage(message);
}

async function handle(message: ToEdge): Promise<void> {
  if (message.type === 'serve') return serve(message);
  if (message.type === 'exit') return port?.close();
  if (serving === null) return;
  if (message.type === 'answers') serving.link.take(message);
  else if (message.type === 'report') await report(serving);
  else if (message.type === 'announce') serving.draining.isAnnounced = true;
  else if (message.type === 'drain') await drain(serving);
  else if (message.type === 'cut') serving.server.dropUploads();
  else close(serving);
}

async function serve({ config, port: httpPort, shared }: Serve): Promise<void> {
  const link = createAuthorityLink(post, shared, config.rateLimits);
  const runtime = runtimeOf(shared);
  const { logLevel: level, logFormat: format } = config;
  const draining: DrainState = { isAnnounced: false, refusesWork: false };
  const edge: Edge = {
    settings: edgeSettings(config),
    call: link.call,
    documents: link.documents,
    limits: link.limits,
    liveRenderers: LIVE_RENDERERS,
    viewers: shared.viewers,
    runtime,
    logger: createLogger({ level, format, destination: { write: link.log }, now: runtime.now }),
    metrics: createEdgeMetrics(),
    exposition: link.exposition,
    startedAt: runtime.elapsed(),
    routes: ROUTES,
    draining,
  };
  const server = await listen(edge, ROUTES, config.host, httpPort);
  serving = { link, edge, server, draining };
  post({ type: 'listening' });
}

function runtimeOf({ clock, manualTime }: SharedState): Runtime {
  const time = timeOf(manualTime);
  return { ...systemRuntime, now: anchoredTime(time, clock), elapsed: time.monotonic };
}

async function report({ edge }: Serving): Promise<void> {
  post({ type: 'report', report: await edge.metrics.report() });
}

async function drain(current: Serving): Promise<void> {
  current.draining.refusesWork = true;
  await current.server.drain();
  current.link.flush();
  post({ type: 'drained' });
}

/** The app is closed before the thread ends: ending it with an open one would abort the process. */
function close({ server }: Serving): void {
  server.close();
  serving = null;
  post({ type: 'closed' });
}
