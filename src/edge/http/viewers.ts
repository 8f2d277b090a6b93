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
import type { Dispatcher, WebSocket as UpstreamSocket } from 'undici';
import { LIVE_TOPICS, type LiveTopic, watchPage } from '../../protocol/api/pages.ts';
import { versionOf } from '../../protocol/contract/documents.ts';
import { Refusal } from '../../protocol/refusals.ts';
import type { Edge } from '../edge.ts';
import { BASE_URL, FORWARDED_FOR } from '../forward/target.ts';
import { loadUndici } from '../forward/upstream.ts';
import { noteOutcome, refuse } from '../request/answer.ts';
import { firstValue, queryOf } from '../request/parse.ts';
import { isAnsweredElsewhere, type Request } from '../request/route.ts';
import { orCut, writeReply } from './send-reply.ts';

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

interface ViewersOptions {
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

/**
 * What waits in sockets because their clients do not accept it: everything that is sent is copied for each of them, so
 * together they are bounded. Those that have been behind the longest are closed first.
 */

interface BufferedSocket {
  getBufferedAmount(): number;
  close(): unknown;
}

/** Behind for this long, a client does not read, or not fast enough to stay current. */
export const STALLED_MS = 30_000;

/** `elapsed` is monotonic, in milliseconds. */
export function createBacklog(mostBytes: number, elapsed: () => number) {
  /** In the order in which they fell behind. */
  const behind = new Map<BufferedSocket, { readonly since: number; bytes: number }>();
  let total = 0;

  function leave(socket: BufferedSocket): void {
    total -= behind.get(socket)?.bytes ?? 0;
    behind.delete(socket);
  }

  function end(socket: BufferedSocket): void {
    leave(socket);
    socket.close();
  }

  return {
    /** Call after each message, and when a client has accepted more. */
    note(socket: BufferedSocket) {
      const bytes = socket.getBufferedAmount();
      if (bytes === 0) return leave(socket);
      const known = behind.get(socket) ?? { since: elapsed(), bytes: 0 };
      behind.set(socket, known);
      total += bytes - known.bytes;
      known.bytes = bytes;
      for (const slowest of behind.keys()) {
        if (total <= mostBytes) return;
        end(slowest);
      }
    },
    /** Call when a socket has closed. */
    leave,
    /** Closes the sockets that have not caught up for too long, however busy they are otherwise. */
    endStalled(): void {
      const limit = elapsed() - STALLED_MS;
      for (const [socket, { since }] of behind) {
        if (since > limit) return;
        end(socket);
      }
    },
  };
}

/** Passes the messages of a live page on from the active instance to a viewer [link-3]. */

interface LiveClient {
  readonly remoteAddr: string;
  readonly baseUrl: string;
  /** Empty if the client is no page. */
  readonly origin: string;
  readonly host: string;
  readonly topic: string;
}

function connectLive(
  dispatcher: Dispatcher,
  { remoteAddr, baseUrl, origin, host, topic }: LiveClient,
): UpstreamSocket {
  const at = `ws://${host}${watchPage.path}`;
  const url = new URL(URL.canParse(at) ? at : `ws://localhost${watchPage.path}`);
  url.searchParams.set('topic', topic);
  const headers: Record<string, string> = { [FORWARDED_FOR]: remoteAddr, [BASE_URL]: baseUrl };
  if (origin !== '') headers.origin = origin;
  const { WebSocket } = loadUndici();
  const socket = new WebSocket(url, { dispatcher, headers });
  socket.binaryType = 'arraybuffer';
  return socket;
}

/** `send` gets each message, and `end` is called when there will be no more. */
function passOn(
  source: UpstreamSocket,
  send: (message: Uint8Array) => void,
  end: () => void,
): void {
  source.addEventListener('message', ({ data }) => {
    send(typeof data === 'string' ? Buffer.from(data) : new Uint8Array(data));
  });
  source.addEventListener('close', end);
}
