/**
 * The WebSockets of live-page viewers, on every app of an edge. They are write-only, and say only which version of a
 * page there is: its viewers fetch it, like everyone else.
 */

import type {
  HttpRequest,
  HttpResponse,
  TemplatedApp,
  us_socket_context_t,
  WebSocket,
} from 'uWebSockets.js';
import Type from 'typebox';
import { LIVE_TOPICS, type LiveTopic, watchPage } from '../../protocol/api/pages.ts';
import { versionOf } from '../../protocol/contract/documents.ts';
import { Refusal } from '../../protocol/refusals.ts';
import type { Edge } from '../edge.ts';
import { noteOutcome, refuse } from '../request/answer.ts';
import { firstValue, queryOf } from '../request/query.ts';
import type { Request } from '../request/route.ts';
import { createBacklog } from './backlog.ts';
import { orCut, writeReply } from './response.ts';

/** A viewer that is this many bytes behind is dropped, never waited for. */
const MAX_BACKPRESSURE = 256 * 1024;
/** The bound of all viewers of a thread together. */
const MOST_WAITING_BYTES = 32 * 1024 * 1024;
const IDLE_SECONDS = 60;
/** How often viewers get a message even without changes, so that silence indicates a failure. */
const ALIVE_MS = 10_000;
const ALIVE = Buffer.from('{"alive":true}');
/** However many viewers there are, they learn of a change within this time. */
const MOST_SPREAD_MS = 5000;

interface Viewer {
  readonly topic: LiveTopic;
}

export interface ViewersOptions {
  openRequest(res: HttpResponse, req: HttpRequest): Request;
  /** Called when a connection is upgraded from HTTP. */
  leftHttp(): void;
}

export function createViewers(edge: Edge, { openRequest, leftHttp }: ViewersOptions) {
  const open = new Set<WebSocket<Viewer>>();
  const backlog = createBacklog(MOST_WAITING_BYTES, edge.runtime.elapsed);

  edge.documents.onChange((topic) => {
    if (!isLiveTopic(topic)) return;
    const message = messageAbout(topic, edge);
    if (message === null) return;
    for (const ws of open) if (ws.getUserData().topic === topic) send(ws, message);
  });

  function send(ws: WebSocket<Viewer>, message: Uint8Array): void {
    ws.send(message);
    backlog.note(ws);
  }

  const ticking = setInterval(() => {
    for (const ws of open) send(ws, ALIVE);
    backlog.endStalled();
  }, ALIVE_MS);
  return {
    /** Serves viewers on this app too; `ended` is called when a viewer's connection has ended. */
    serveOn(app: TemplatedApp, ended: () => void): void {
      app.ws<Viewer>(watchPage.path, {
        maxPayloadLength: 1024,
        maxBackpressure: MAX_BACKPRESSURE,
        closeOnBackpressureLimit: 1,
        idleTimeout: IDLE_SECONDS,
        upgrade: orCut((res, req: HttpRequest, context: us_socket_context_t) =>
          upgrade(res, req, context, edge, openRequest(res, req)),
        ),
        open(ws) {
          leftHttp();
          open.add(ws);
          Atomics.add(edge.viewers, 0, 1);
          const message = messageAbout(ws.getUserData().topic, edge);
          if (message !== null) send(ws, message);
        },
        drain: backlog.note,
        close(ws) {
          open.delete(ws);
          backlog.leave(ws);
          Atomics.sub(edge.viewers, 0, 1);
          ended();
        },
      });
    },
    end: () => clearInterval(ticking),
  };
}

/** Null while there is no such document; viewers hear of it as soon as there is. Each viewer adds a millisecond. */
function messageAbout(topic: LiveTopic, { documents, viewers }: Edge): Uint8Array | null {
  const document = documents.latest(topic);
  if (document === undefined) return null;
  const spreadMs = Math.min(Atomics.load(viewers, 0), MOST_SPREAD_MS);
  const message = { topic, version: versionOf(document.etag), spread_ms: spreadMs };
  return Buffer.from(JSON.stringify(message));
}

function isLiveTopic(text: string): text is LiveTopic {
  return LIVE_TOPICS.some((topic) => topic === text);
}

/** Answers an upgrade request synchronously. */
function upgrade(
  res: HttpResponse,
  req: HttpRequest,
  context: us_socket_context_t,
  edge: Edge,
  request: Request,
): void {
  let topic: LiveTopic;
  try {
    topic = topicOf(req, request);
  } catch (cause) {
    const reply = refuse(edge, request, cause);
    res.cork(() => writeReply(res, request, reply, String(reply.body), 'asked'));
    return;
  }
  noteOutcome(edge, request, 101);
  res.upgrade<Viewer>(
    { topic },
    req.getHeader('sec-websocket-key'),
    req.getHeader('sec-websocket-protocol'),
    req.getHeader('sec-websocket-extensions'),
    context,
  );
}

const LIVE_QUERY = { query: Type.Object({ topic: Type.String() }) };

/** Throws the refusal of an upgrade. */
function topicOf(req: HttpRequest, request: Request): LiveTopic {
  const topic = firstValue(queryOf(request.rawQuery, LIVE_QUERY), 'topic') ?? '';
  if (!isLiveTopic(topic)) throw new Refusal('unknown_live_topic');
  if (request.isRefused) throw new Refusal('shutting_down');
  if (!isOfThisSite(req, request)) throw new Refusal('foreign_origin');
  return topic;
}

/**
 * Prevents pages of other sites from opening sockets here, by the `Origin` that browsers send. It is compared with the
 * base URL, because a proxy may have rewritten the host.
 */
function isOfThisSite(req: HttpRequest, { baseUrl }: Request): boolean {
  const origin = req.getHeader('origin');
  if (origin === '') return true;
  const host = /^https?:\/\/(.+)$/.exec(origin)?.[1];
  const own = URL.canParse(baseUrl) ? new URL(baseUrl).host : null;
  return host === own || host === req.getHeader('host');
}
