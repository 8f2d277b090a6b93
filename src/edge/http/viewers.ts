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
import { oneSliceATurn, visitInSlices } from '../../base/work.ts';
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

/**
 * A viewer that is this many bytes behind is dropped, never waited for: more than a hundred messages. Pongs count too, and
 * are bounded only by this until the next message.
 */
const MAX_BACKPRESSURE = 16 * 1024;
/** The bound of all viewers of a thread together. */
const MOST_WAITING_BYTES = 32 * 1024 * 1024;
const IDLE_SECONDS = 60;
/** How often viewers get a message even without changes, so that silence indicates a failure. */
const ALIVE_MS = 10_000;
const ALIVE = Buffer.from('{"alive":true}');
/** However many viewers there are, they fetch a changed page within this time. Each viewer adds a millisecond. */
const MOST_SPREAD_MS = 5000;
/** How many viewers get a message in one turn of the event loop. */
const VIEWERS_PER_SLICE = 128;

interface Viewer {
  readonly topic: LiveTopic;
  /** Null if this instance is active. */
  readonly relay: Relay | null;
  /** The version that it has heard of last. */
  heard: string | null;
}

/** What the active instance says about a page, over one socket for all viewers of this thread [link-3]. */
interface Relay {
  readonly socket: UpstreamSocket;
  readonly isOpened: Promise<boolean>;
  /** Null until it has said one. */
  version: string | null;
  isOver: boolean;
  /** How many have joined and not left. */
  viewers: number;
}

interface ViewersOptions {
  openRequest(res: HttpResponse, req: HttpRequest, isForwarded: boolean): Request;
  /** Called when a connection is upgraded from HTTP. */
  leftHttp(): void;
}

export function createViewers(edge: Edge, { openRequest, leftHttp }: ViewersOptions) {
  const open = new Set<WebSocket<Viewer>>();
  const backlog = createBacklog(MOST_WAITING_BYTES, edge.runtime.elapsed);
  const relays = new Map<LiveTopic, Relay>();
  let isOutdated = false;
  let isAnnouncing = false;

  edge.documents.onChange((topic) => {
    if (isLiveTopic(topic)) void announce();
  });

  /** What changes during a round is said in the next one. */
  async function announce(): Promise<void> {
    isOutdated = true;
    if (isAnnouncing) return;
    isAnnouncing = true;
    while (isOutdated) {
      isOutdated = false;
      await forAll(update);
    }
    isAnnouncing = false;
  }

  /** In slices: each message is a call of the system. */
  function forAll(work: (ws: WebSocket<Viewer>) => void): Promise<void> {
    return oneSliceATurn(
      visitInSlices([...open], VIEWERS_PER_SLICE, (ws) => {
        if (open.has(ws)) work(ws);
      }),
    );
  }

  function update(ws: WebSocket<Viewer>): void {
    const viewer = ws.getUserData();
    const { topic, relay, heard } = viewer;
    if (relay?.isOver === true) return void ws.end();
    const version = relay === null ? ownVersion(topic) : relay.version;
    if (version === null || version === heard) return;
    viewer.heard = version;
    const spreadMs = Math.min(Atomics.load(edge.viewers, 0), MOST_SPREAD_MS);
    send(ws, Buffer.from(JSON.stringify({ topic, version, spread_ms: spreadMs })));
  }

  /** Null while there is no such document; viewers hear of it as soon as there is. */
  function ownVersion(topic: LiveTopic): string | null {
    const document = edge.documents.latest(topic);
    return document === undefined ? null : versionOf(document.etag);
  }

  function send(ws: WebSocket<Viewer>, message: Uint8Array): void {
    ws.send(message);
    backlog.note(ws);
  }

  function join(topic: LiveTopic, first: Request): Relay {
    const relay = relays.get(topic) ?? openRelay(topic, first);
    relay.viewers += 1;
    return relay;
  }

  function openRelay(topic: LiveTopic, first: Request): Relay {
    const dispatcher = edge.forwarder?.lasting();
    if (!dispatcher) throw new Refusal('authority_unavailable');
    const socket = connectLive(dispatcher, topic, first);
    const isOpened = new Promise<boolean>((resolve) => {
      socket.addEventListener('open', () => resolve(true));
      socket.addEventListener('close', () => resolve(false));
    });
    const relay: Relay = { socket, isOpened, version: null, isOver: false, viewers: 0 };
    relays.set(topic, relay);
    socket.addEventListener('message', ({ data }) => {
      const version = VERSION.exec(String(data))?.[1];
      if (version === undefined) return;
      relay.version = version;
      void announce();
    });
    socket.addEventListener('close', () => {
      relay.isOver = true;
      forget(topic, relay);
      void announce();
    });
    return relay;
  }

  function leave(topic: LiveTopic, relay: Relay): void {
    relay.viewers -= 1;
    if (relay.viewers > 0) return;
    forget(topic, relay);
    relay.socket.close();
  }

  function forget(topic: LiveTopic, relay: Relay): void {
    if (relays.get(topic) === relay) relays.delete(topic);
  }

  /** Answers an upgrade request; on a standby, once the active instance has. */
  async function upgrade(
    res: HttpResponse,
    req: HttpRequest,
    context: us_socket_context_t,
    request: Request,
  ): Promise<void> {
    const handshake = ['key', 'protocol', 'extensions'].map((name) =>
      req.getHeader(`sec-websocket-${name}`),
    ) as [string, string, string];
    let isGone = false;
    res.onAborted(() => {
      isGone = true;
    });
    try {
      const topic = topicOf(req, request);
      const isElsewhere = isAnsweredElsewhere(edge, request);
      if (isElsewhere && request.isForwarded) throw new Refusal('authority_unavailable');
      const relay = isElsewhere ? join(topic, request) : null;
      const isOpened = relay === null || (await relay.isOpened);
      if (relay !== null && (isGone || !isOpened)) leave(topic, relay);
      if (isGone) return;
      if (!isOpened) throw new Refusal('authority_unavailable');
      noteOutcome(edge, request, 101);
      res.cork(() => res.upgrade<Viewer>({ topic, relay, heard: null }, ...handshake, context));
    } catch (cause) {
      const reply = refuse(edge, request, cause);
      res.cork(() => writeReply(res, request, reply, String(reply.body), 'asked'));
    }
  }

  const ticking = setInterval(() => {
    void forAll((ws) => send(ws, ALIVE));
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
        upgrade: orCut((res, req: HttpRequest, context: us_socket_context_t) => {
          void upgrade(res, req, context, openRequest(res, req, isForwarded));
        }),
        open(ws) {
          if (!isForwarded) leftHttp();
          open.add(ws);
          Atomics.add(edge.viewers, 0, 1);
          update(ws);
        },
        drain: backlog.note,
        close(ws) {
          const { topic, relay } = ws.getUserData();
          if (relay !== null) leave(topic, relay);
          backlog.leave(ws);
          if (open.delete(ws)) Atomics.sub(edge.viewers, 0, 1);
          ended();
        },
      });
    },
    end: () => clearInterval(ticking),
  };
}

function isLiveTopic(text: string): text is LiveTopic {
  return LIVE_TOPICS.some((topic) => topic === text);
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

/** A version in a message of the active instance. */
const VERSION = /"version":"([^"]+)"/;

function connectLive(
  dispatcher: Dispatcher,
  topic: LiveTopic,
  { remoteAddr, baseUrl }: Request,
): UpstreamSocket {
  const { WebSocket } = loadUndici();
  return new WebSocket(`ws://localhost${watchPage.path}?topic=${topic}`, {
    dispatcher,
    headers: { [FORWARDED_FOR]: remoteAddr, [BASE_URL]: baseUrl },
  });
}
