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
import { connectLive, passOn, type UpstreamSocket } from '../forward/live.ts';
import { noteOutcome, refuse } from '../request/answer.ts';
import { firstValue, queryOf } from '../request/query.ts';
import { isAnsweredElsewhere, type Request } from '../request/route.ts';
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

/** A request for an upgrade, and the base URL that its client used. */
interface OpenedViewer {
  readonly request: Request;
  readonly baseUrl: string;
}

interface Viewer {
  readonly topic: LiveTopic;
  /** The socket of the active instance, whose messages it gets; null if this instance is active. */
  readonly source: UpstreamSocket | null;
  isGone: boolean;
}

export interface ViewersOptions {
  openRequest(res: HttpResponse, req: HttpRequest, isForwarded: boolean): OpenedViewer;
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

  function bridge(source: UpstreamSocket, ws: WebSocket<Viewer>, viewer: Viewer): void {
    passOn(
      source,
      (message) => {
        if (!viewer.isGone) send(ws, message);
      },
      () => {
        if (!viewer.isGone) ws.end();
      },
    );
  }

  const ticking = setInterval(() => {
    for (const ws of open) send(ws, ALIVE);
    backlog.endStalled();
  }, ALIVE_MS);
  return {
    /** Serves viewers on this app too; `ended` is called when a viewer's connection has ended. */
    serveOn(app: TemplatedApp, ended: () => void, isForwarded: boolean): void {
      app.ws<Viewer>(watchPage.path, {
        maxPayloadLength: 1024,
        maxBackpressure: MAX_BACKPRESSURE,
        closeOnBackpressureLimit: 1,
        idleTimeout: IDLE_SECONDS,
        upgrade: orCut((res, req: HttpRequest, context: us_socket_context_t) =>
          upgrade(res, req, context, edge, openRequest(res, req, isForwarded)),
        ),
        open(ws) {
          if (!isForwarded) leftHttp();
          const viewer = ws.getUserData();
          if (viewer.source !== null) return bridge(viewer.source, ws, viewer);
          open.add(ws);
          Atomics.add(edge.viewers, 0, 1);
          const message = messageAbout(viewer.topic, edge);
          if (message !== null) send(ws, message);
        },
        drain: backlog.note,
        close(ws) {
          const viewer = ws.getUserData();
          viewer.isGone = true;
          viewer.source?.close();
          backlog.leave(ws);
          if (open.delete(ws)) Atomics.sub(edge.viewers, 0, 1);
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

/** Answers an upgrade request, or has the active instance answer it. */
function upgrade(
  res: HttpResponse,
  req: HttpRequest,
  context: us_socket_context_t,
  edge: Edge,
  { request, baseUrl }: OpenedViewer,
): void {
  const handshake = ['key', 'protocol', 'extensions'].map((name) =>
    req.getHeader(`sec-websocket-${name}`),
  ) as [string, string, string];

  function refuseWith(cause: unknown): void {
    const reply = refuse(edge, request, cause);
    res.cork(() => writeReply(res, request, reply, String(reply.body), 'asked'));
  }

  function accept(topic: LiveTopic, source: UpstreamSocket | null): void {
    noteOutcome(edge, request, 101);
    res.cork(() => res.upgrade<Viewer>({ topic, source, isGone: false }, ...handshake, context));
  }

  try {
    const topic = topicOf(req, request);
    if (!isAnsweredElsewhere(edge, request)) {
      accept(topic, null);
      return;
    }
    const dispatcher = request.isForwarded ? null : edge.forwarder?.lasting();
    if (!dispatcher) throw new Refusal('authority_unavailable');
    const client = { remoteAddr: request.remoteAddr, baseUrl, origin: req.getHeader('origin') };
    const source = connectLive(dispatcher, { ...client, host: req.getHeader('host'), topic });
    let isOver = false;
    res.onAborted(() => {
      isOver = true;
      source.close();
    });
    source.addEventListener('open', () => {
      if (!isOver) accept(topic, source);
      isOver = true;
    });
    source.addEventListener('close', () => {
      if (!isOver) refuseWith(new Refusal('authority_unavailable'));
      isOver = true;
    });
  } catch (cause) {
    refuseWith(cause);
  }
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
