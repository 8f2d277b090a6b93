/**
 * The only file that knows uWebSockets.js, and the one place for its sharp edges: a request is read
 * before the first wait, an aborted response is never touched, writes are corked, and a body is bounded
 * while it streams in.
 */

import type { HttpRequest, HttpResponse, us_listen_socket } from 'uWebSockets.js';
import { createRequire } from 'node:module';
import type { Edge } from './edge.ts';
import { createPipeline, type FinishedReply, type RequestHead } from './pipeline.ts';

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

/** No answer of this service is ever framed, sniffed or allowed to load anything. */
const SECURITY_HEADERS = [
  ['X-Content-Type-Options', 'nosniff'],
  ['X-Frame-Options', 'DENY'],
  ['Referrer-Policy', 'no-referrer'],
  ['Content-Security-Policy', "default-src 'none'; frame-ancestors 'none'"],
] as const;

/** LIBUS_LISTEN_EXCLUSIVE_PORT: without it a second server would silently share the port. */
const EXCLUSIVE_PORT = 1;

/** The overload with host, port and options exists, but the package's declarations leave it out. */
interface ExclusiveListener {
  listen(
    host: string,
    port: number,
    options: number,
    done: (socket: us_listen_socket | false) => void,
  ): void;
}

const NO_BODY = new Uint8Array(0);

export async function listen(edge: Edge, host: string, port: number): Promise<Server> {
  const uws = loadUws();
  const open = createPipeline(edge);
  const { maxRequestBytes } = edge.settings;
  let inFlight = 0;
  let onIdle: (() => void) | null = null;
  const app = uws.App();

  app.any('/*', (res, req) => {
    const method = req.getMethod().toUpperCase();
    const exchange = open(requestHead(method, res, req));
    let aborted = false;
    let answering = false;
    inFlight += 1;

    function settled(): void {
      inFlight -= 1;
      if (inFlight === 0) onIdle?.();
    }

    res.onAborted(() => {
      aborted = true;
      if (!answering) settled();
    });

    function send(reply: FinishedReply, closeConnection: boolean): void {
      if (!aborted) res.cork(() => write(res, method, reply, closeConnection || onIdle !== null));
      settled();
    }

    function answer(body: Uint8Array | 'too_large'): void {
      answering = true;
      const reply = exchange.finish(body);
      const closeConnection = body === 'too_large';
      if (reply instanceof Promise) void reply.then((late) => send(late, closeConnection));
      else send(reply, closeConnection);
    }

    if (!exchange.takesBody) answer(NO_BODY);
    else if (Number(req.getHeader('content-length')) > maxRequestBytes) answer('too_large');
    else collectBody(res, maxRequestBytes, answer);
  });

  const socket = await new Promise<us_listen_socket>((resolve, reject) => {
    (app as unknown as ExclusiveListener).listen(host, port, EXCLUSIVE_PORT, (token) => {
      if (token === false) reject(new Error(`The address ${host}:${port} cannot be listened on`));
      else resolve(token);
    });
  });

  return {
    port: uws.us_socket_local_port(socket),
    async drain() {
      uws.us_listen_socket_close(socket);
      const idle = new Promise<void>((resolve) => {
        onIdle = resolve;
      });
      if (inFlight > 0) await idle;
    },
    close: () => app.close(),
  };
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

function requestHead(method: string, res: HttpResponse, req: HttpRequest): RequestHead {
  return {
    method,
    path: req.getUrl(),
    query: req.getQuery() ?? '',
    header: (name) => req.getHeader(name),
    peerAddress: () => Buffer.from(res.getRemoteAddressAsText()).toString('latin1'),
  };
}

/**
 * Hands over the whole body, or `too_large` as soon as it is known to pass the limit. The bytes of a
 * body in one piece are valid only during the call, which is why they are parsed before any wait.
 */
function collectBody(
  res: HttpResponse,
  limit: number,
  answer: (body: Uint8Array | 'too_large') => void,
): void {
  let pieces: Buffer[] = [];
  let length = 0;
  let done = false;

  function finish(body: Uint8Array | 'too_large'): void {
    done = true;
    pieces = [];
    answer(body);
  }

  res.onData((chunk, isLast) => {
    if (done) return;
    length += chunk.byteLength;
    if (length > limit) finish('too_large');
    else if (isLast && pieces.length === 0) finish(new Uint8Array(chunk));
    else {
      pieces.push(Buffer.from(chunk.slice(0)));
      if (isLast) finish(Buffer.concat(pieces));
    }
  });
}

function write(res: HttpResponse, method: string, reply: FinishedReply, close: boolean): void {
  res.writeStatus(STATUS_TEXT[reply.status] ?? `${reply.status} Status`);
  res.writeHeader('Content-Type', reply.contentType);
  res.writeHeader('X-Request-ID', reply.requestId);
  for (const [name, value] of reply.headers) res.writeHeader(name, value);
  for (const [name, value] of SECURITY_HEADERS) res.writeHeader(name, value);
  if (close) res.writeHeader('Connection', 'close');
  if (method === 'HEAD' || reply.status === 304) {
    res.endWithoutBody(reply.status === 304 ? undefined : Buffer.byteLength(reply.body), close);
  } else {
    res.end(reply.body, close);
  }
}
