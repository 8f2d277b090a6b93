/** The WebSockets of those who look at live pages. They are only ever written to. */
import type { HttpRequest, HttpResponse, TemplatedApp, us_socket_context_t } from 'uWebSockets.js';
import type { Edge } from './edge.ts';
import { createLivePages, isLiveTopic, LIVE_TOPICS, type LiveTopic } from './live-pages.ts';

export const LIVE_PATH = '/live';

/** A viewer that does not keep up with this many bytes is dropped, never waited for. */
const MAX_BACKPRESSURE = 256 * 1024;
const IDLE_SECONDS = 60;
/** How often viewers are told that nothing has happened, so that silence means trouble. */
const ALIVE_MS = 10_000;
const ALIVE_TOPIC = 'alive';
const ALIVE = '{"alive":true}';

interface Viewer {
  readonly topic: LiveTopic;
}

/** Serves the viewers of one edge, telling of each connection that is one of HTTP no more; returns what ends it. */
export function serveViewers(app: TemplatedApp, edge: Edge, leftHttp: () => void): () => void {
  const counts = new Map(LIVE_TOPICS.map((topic) => [topic, 0]));
  const pages = createLivePages(
    edge.documents,
    edge.liveRenderers,
    edge.settings.genesis.network_name,
    (topic) => (counts.get(topic) ?? 0) > 0,
  );
  pages.onChange((topic, message) => app.publish(topic, message));

  function count(topic: LiveTopic, difference: 1 | -1): void {
    counts.set(topic, (counts.get(topic) ?? 0) + difference);
    Atomics.add(edge.viewers, 0, difference);
  }

  app.ws<Viewer>(LIVE_PATH, {
    maxPayloadLength: 1024,
    maxBackpressure: MAX_BACKPRESSURE,
    closeOnBackpressureLimit: 1,
    idleTimeout: IDLE_SECONDS,
    upgrade: (res, req, context) => upgrade(res, req, context, edge),
    open(ws) {
      leftHttp();
      const { topic } = ws.getUserData();
      count(topic, 1);
      ws.subscribe(topic);
      ws.subscribe(ALIVE_TOPIC);
      const message = pages.current(topic);
      if (message !== null) ws.send(message);
    },
    close: (ws) => count(ws.getUserData().topic, -1),
  });
  const ticking = setInterval(() => app.publish(ALIVE_TOPIC, ALIVE), ALIVE_MS);
  return () => clearInterval(ticking);
}

function upgrade(
  res: HttpResponse,
  req: HttpRequest,
  context: us_socket_context_t,
  edge: Edge,
): void {
  const topic = req.getQuery('topic') ?? '';
  if (!isLiveTopic(topic)) {
    res.writeStatus('400 Bad Request').end();
    return;
  }
  const refusal = refusalOf(req, edge);
  if (refusal !== null) {
    res.writeStatus(refusal).end();
    return;
  }
  res.upgrade<Viewer>(
    { topic },
    req.getHeader('sec-websocket-key'),
    req.getHeader('sec-websocket-protocol'),
    req.getHeader('sec-websocket-extensions'),
    context,
  );
}

function refusalOf(req: HttpRequest, edge: Edge): string | null {
  if (edge.isDraining()) return '503 Service Unavailable';
  return isOfThisSite(req, edge) ? null : '403 Forbidden';
}

/** Pages of other sites open no sockets here: a browser tells which site a page is from. */
function isOfThisSite(req: HttpRequest, { settings }: Edge): boolean {
  const origin = req.getHeader('origin');
  if (origin === '') return true;
  const host = /^https?:\/\/(.+)$/.exec(origin)?.[1];
  const own = settings.publicUrl === null ? null : new URL(settings.publicUrl).host;
  return host === req.getHeader('host') || (own !== null && host === own);
}
