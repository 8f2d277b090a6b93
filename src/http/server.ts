/**
 * Requests and their answers on uWebSockets.js, and the one place for its sharp edges: a request is read
 * before the first wait, an aborted response is never touched, writes are corked, and a body is bounded
 * while it streams in.
 */

import type { HttpRequest, HttpResponse, us_listen_socket } from 'uWebSockets.js';
import { createRequire } from 'node:module';
import type { Edge } from './edge.ts';
import { createPeers, type Peers } from './peers.ts';
import { type PieceTaker, sendPieces } from './piecewise.ts';
import {
  type Exchange,
  type FinishedReply,
  finishExchange,
  openExchange,
  type RequestHead,
} from './pipeline.ts';
import { isPiecewise } from './reply.ts';
import { createRouter } from './router.ts';
import { serveViewers } from './viewers.ts';

export interface Server {
  readonly port: number;
  /** Takes no new connections; resolves when every request in flight is answered. */
  drain(): Promise<void>;
  /** Ends all connections. */
  close(): void;
}

const STATUS_TEXT: Readonly<Record<number, string>> = {
  200: '200 OK',
  201: '201 Created',
  304: '304 Not Modified',
  400: '400 Bad Request',
  401: '401 Unauthorized',
  403: '403 Forbidden',
  404: '404 Not Found',
  405: '405 Method Not Allowed',
  409: '409 Conflict',
  413: '413 Payload Too Large',
  422: '422 Unprocessable Entity',
  429: '429 Too Many Requests',
  500: '500 Internal Server Error',
  503: '503 Service Unavailable',
};

/**
 * No answer of this service is ever framed, sniffed or allowed to load anything; a page brings a policy
 * of its own, which allows what stands in it.
 */
const SECURITY_LINES = securityLines("default-src 'none'; frame-ancestors 'none'");

function securityLines(contentSecurityPolicy: string): string {
  return [
    'X-Content-Type-Options: nosniff',
    'X-Frame-Options: DENY',
    'Referrer-Policy: no-referrer',
    `Content-Security-Policy: ${contentSecurityPolicy}`,
  ].join('\r\n');
}

const NO_BODY = new Uint8Array(0);

/** A body that is too large is read and dropped up to this many bytes before it is refused. */
const MAX_DRAINED = 64 * 1024 * 1024;

/** Requests that are not answered yet, and who waits for there to be none. */
interface Traffic {
  inFlight: number;
  onIdle: (() => void) | null;
  /** Answers of this turn of the event loop. */
  ready: Ready[];
}

interface Ready {
  readonly connection: Connection;
  readonly reply: FinishedReply;
  readonly close: boolean;
}

/** One request on its socket. */
interface Connection extends PieceTaker {
  readonly exchange: Exchange;
  answering: boolean;
}

/**
 * Other threads of this process may listen on the same port; so could another process, which is why the
 * port is looked at first (`freePort`).
 */
export async function listen(edge: Edge, host: string, port: number): Promise<Server> {
  const uws = loadUws();
  const findRoute = createRouter(edge.routes);
  const traffic: Traffic = { inFlight: 0, onIdle: null, ready: [] };
  const peers = createPeers();
  const app = uws.App();

  app.filter((res, change) => (Number(change) > 0 ? peers.opened(addressOf(res)) : peers.closed()));
  app.any('/*', (res, req) => {
    const exchange = openExchange(edge, findRoute, new UwsRequestHead(res, req, peers));
    const connection: Connection = {
      res,
      exchange,
      aborted: false,
      answering: false,
      onGone: null,
    };
    traffic.inFlight += 1;
    res.onAborted(() => {
      connection.aborted = true;
      connection.onGone?.();
      if (!connection.answering) settled(traffic);
    });
    if (!exchange.takesBody) {
      answer(edge, traffic, connection, NO_BODY);
    } else if (Number(req.getHeader('content-length')) > drainedBytes(exchange.maxBodyBytes)) {
      answer(edge, traffic, connection, 'too_large');
    } else {
      collectBody(res, exchange.maxBodyBytes, (body) => answer(edge, traffic, connection, body));
    }
  });

  const endViewers = serveViewers(app, edge, peers.closed);
  const socket = await new Promise<us_listen_socket>((resolve, reject) => {
    app.listen(host, port, (token) => {
      if (token === false) reject(new Error(`The address ${host}:${port} cannot be listened on`));
      else resolve(token);
    });
  });

  return {
    port: uws.us_socket_local_port(socket),
    async drain() {
      uws.us_listen_socket_close(socket);
      const idle = new Promise<void>((resolve) => {
        traffic.onIdle = resolve;
      });
      if (traffic.inFlight > 0) await idle;
    },
    close() {
      endViewers();
      app.close();
    },
  };
}

function answer(
  edge: Edge,
  traffic: Traffic,
  connection: Connection,
  body: Uint8Array | 'too_large',
): void {
  connection.answering = true;
  const close = body === 'too_large';
  const reply = finishExchange(edge, connection.exchange, body);
  if (reply instanceof Promise) {
    void reply.then((late) => sendSoon(traffic, { connection, reply: late, close }));
  } else {
    sendSoon(traffic, { connection, reply, close });
  }
}

/**
 * Answers of one turn of the event loop are written together at its end. Written one by one they would
 * wake their clients in between, whose next requests then make many small turns of one large one: that
 * costs a fifth of all CPU time under load.
 */
function sendSoon(traffic: Traffic, answer: Ready): void {
  traffic.ready.push(answer);
  if (traffic.ready.length === 1) setImmediate(() => sendAll(traffic));
}

function sendAll(traffic: Traffic): void {
  const { ready } = traffic;
  traffic.ready = [];
  for (const answer of ready) send(traffic, answer);
}

function send(traffic: Traffic, { connection, reply, close }: Ready): void {
  const { res, exchange, aborted } = connection;
  const { body } = reply;
  const closes = close || traffic.onIdle !== null;
  if (!isPiecewise(body)) {
    if (!aborted) res.cork(() => write(res, exchange.method, reply, body, closes));
    settled(traffic);
  } else if (exchange.method === 'HEAD') {
    body.abandon();
    if (!aborted) res.cork(() => writeHead(res, reply, closes).endWithoutBody(undefined, closes));
    settled(traffic);
  } else {
    if (!aborted) res.cork(() => writeHead(res, reply, closes));
    void sendPieces(connection, body, closes).then(() => settled(traffic));
  }
}

function settled(traffic: Traffic): void {
  traffic.inFlight -= 1;
  if (traffic.inFlight === 0) traffic.onIdle?.();
}

/** uWebSockets.js is native code: a machine without a fitting build gets one sentence that says so. */
function loadUws(): typeof import('uWebSockets.js') {
  try {
    return createRequire(import.meta.url)('uWebSockets.js');
  } catch {
    throw new Error(
      `uWebSockets.js has no build that loads here (${process.platform} ${process.arch}, Node ${process.version}): ` +
        'use Node 20 with glibc 2.27 or later, or Node 22 to 25 with glibc 2.38 or later, ' +
        'or install the upstream package under the same name',
    );
  }
}

/**
 * The head of a request, readable until its handler returns. A class, because one is made for every
 * request: closures in its place would have to be made, and named, each time.
 */
class UwsRequestHead implements RequestHead {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly #res: HttpResponse;
  readonly #req: HttpRequest;
  readonly #peers: Peers;

  constructor(res: HttpResponse, req: HttpRequest, peers: Peers) {
    this.#res = res;
    this.#req = req;
    this.#peers = peers;
    this.method = req.getMethod().toUpperCase();
    this.path = req.getUrl();
    this.query = req.getQuery() ?? '';
  }

  header(name: string): string {
    return this.#req.getHeader(name);
  }

  headerLines(name: string): readonly string[] {
    const lines: string[] = [];
    this.#req.forEach((key, value) => {
      if (key === name) lines.push(value);
    });
    return lines;
  }

  peerAddress(): string {
    return this.#peers.only ?? addressOf(this.#res);
  }
}

function addressOf(res: HttpResponse): string {
  return Buffer.from(res.getRemoteAddressAsText()).toString('latin1');
}

/**
 * Hands over the whole body, or `too_large` when it passes the limit. What is too large is still read to
 * its end, up to a point: a client that is answered while it sends may never see the answer. The bytes of
 * a body in one piece are valid only during the call, which is why they are parsed before any wait.
 */
function collectBody(
  res: HttpResponse,
  limit: number,
  take: (body: Uint8Array | 'too_large') => void,
): void {
  let pieces: Buffer[] | null = null;
  let length = 0;
  const drained = drainedBytes(limit);
  res.onData((chunk, isLast) => {
    const before = length;
    length += chunk.byteLength;
    if (length > limit) {
      pieces = null;
      const ends = isLast || length > drained;
      if (ends && before <= drained) take('too_large');
    } else if (isLast && pieces === null) {
      take(new Uint8Array(chunk));
    } else {
      pieces ??= [];
      pieces.push(Buffer.from(chunk.slice(0)));
      if (isLast) take(Buffer.concat(pieces));
    }
  });
}

function drainedBytes(limit: number): number {
  return Math.max(MAX_DRAINED, limit);
}

function write(
  res: HttpResponse,
  method: string,
  reply: FinishedReply,
  body: string | Uint8Array,
  close: boolean,
): void {
  writeHead(res, reply, close);
  if (reply.status === 304) {
    // No length: the client may hold another form of the document. Told to close, it does so itself.
    res.endWithoutBody();
  } else if (method === 'HEAD') {
    res.endWithoutBody(Buffer.byteLength(body), close);
  } else {
    res.end(body, close);
  }
}

/**
 * All lines but the first are written as the value of the second: each call into native code costs as
 * much as building its strings.
 */
function writeHead(res: HttpResponse, reply: FinishedReply, close: boolean): HttpResponse {
  const { status, contentType, requestId, headerLines, contentSecurityPolicy } = reply;
  const security =
    contentSecurityPolicy === null ? SECURITY_LINES : securityLines(contentSecurityPolicy);
  const closing = close ? '\r\nConnection: close' : '';
  res.writeStatus(STATUS_TEXT[status] ?? `${status} Status`);
  return res.writeHeader(
    'Content-Type',
    `${contentType}\r\nX-Request-ID: ${requestId}\r\n${headerLines}\r\n${security}${closing}`,
  );
}
