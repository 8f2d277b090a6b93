/**
 * Requests and answers on uWebSockets.js, and the only place that deals with its constraints: a request is
 * read before the first wait, an aborted response is never touched, writes are corked, and a body is
 * bounded while it streams in.
 */

import type { HttpRequest, HttpResponse } from 'uWebSockets.js';
import { createRequire } from 'node:module';
import type { TlsFiles } from '../../base/tls/pair.ts';
import { maxBodyBytes } from '../../protocol/route-description.ts';
import type { Edge } from '../edge.ts';
import type { Reply } from '../reply.ts';
import { answer, shed } from '../request/answer.ts';
import type { ReceivedBody } from '../request/body.ts';
import { hasOneLength, openRequest } from '../request/open-request.ts';
import { createPeers, UwsRequestHead } from '../request/request-head.ts';
import type { Request, Route } from '../request/route.ts';
import { createRouter } from '../request/router.ts';
import { openApps } from './apps.ts';
import { orCut } from './response.ts';
import { type PieceTaker, sendReply } from './send-reply.ts';
import { createTraffic, type Generation, type Traffic } from './traffic.ts';
import { bytesRead, createUploads, UPLOAD_LIMITS } from './uploads.ts';
import { createViewers } from './viewers.ts';

/** State shared by the answers of one server. */
interface Answers {
  readonly edge: Edge;
  readonly traffic: Traffic;
  isDraining: boolean;
  /** Answers of this turn of the event loop. */
  ready: Ready[];
}

interface Ready {
  readonly connection: Connection;
  readonly reply: Reply;
  readonly isCutShort: boolean;
}

/** One request on its socket. */
interface Connection extends PieceTaker {
  readonly request: Request;
  /** Null until its answer is begun. */
  generation: Generation | null;
}

export interface ListenOptions {
  readonly host: string;
  readonly port: number;
  /** Null for plain HTTP. */
  readonly tls: TlsFiles | null;
}

/**
 * Other threads of this process may listen on the same port. So could another process, which is why the
 * port is checked first (`freePort`).
 */
export function listen(edge: Edge, routes: readonly Route[], options: ListenOptions) {
  const uws = loadUws();
  const findRoute = createRouter(routes);
  const traffic = createTraffic();
  const answers: Answers = { edge, traffic, isDraining: false, ready: [] };
  const peers = createPeers();
  const uploads = createUploads(UPLOAD_LIMITS);
  edge.queue.onSlice(() => sendAll(answers));
  omitLibraryName(uws);
  const { proxyHops, maxConnections, maxRequestBytes } = edge.settings;
  const viewers = createViewers(edge, {
    openRequest: (res, req) => openRequest(edge, findRoute, new UwsRequestHead(res, req, peers)),
    leftHttp: peers.closed,
  });

  function take(res: HttpResponse, req: HttpRequest): void {
    const head = new UwsRequestHead(res, req, peers);
    const request = openRequest(edge, findRoute, head);
    const connection: Connection = {
      res,
      request,
      aborted: false,
      generation: null,
      onGone: null,
    };
    request.client = connection;
    traffic.arrived();
    res.onAborted(() => {
      connection.aborted = true;
      connection.onGone?.();
      if (connection.generation === null) traffic.left();
    });
    const { takesBody, route } = request;
    // A proxy may forward a body of a request that should have none.
    if ((takesBody || proxyHops > 0) && !hasOneLength(head, proxyHops)) {
      begin(answers, connection, 'ambiguous');
    } else if (!takesBody || route === null) {
      received(answers, connection, NO_BYTES);
    } else {
      const limit = Math.min(maxRequestBytes, maxBodyBytes(route));
      if (Number(req.getHeader('content-length')) > bytesRead(limit)) {
        begin(answers, connection, 'too_large');
      } else {
        connection.onGone = uploads.receive(res, limit, (body) =>
          received(answers, connection, body),
        );
      }
    }
  }

  const apps = openApps({
    ...options,
    uws,
    maxConnections,
    peers,
    serve(app, ended) {
      app.any('/*', orCut(take));
      viewers.serveOn(app, ended);
    },
    onPaused: () =>
      edge.logger.write(
        'WARNING',
        'http',
        `No new connections while ${maxConnections} are open: file descriptors run out`,
      ),
  });
  return {
    port: apps.port,
    /**
     * Closes each connection with its next answer; resolves when every request in flight is answered. Call when new work
     * is refused. Connections are still accepted, so that their requests get an answer.
     */
    async drain(): Promise<void> {
      answers.isDraining = true;
      edge.eventReaders.end();
      await traffic.idle();
    },
    /** Refuses every request whose body is still arriving. */
    dropUploads: uploads.dropAll,
    barrier: traffic.barrier,
    /** Makes new connections use this pair; open ones continue. Rejects if it cannot be used. */
    useTls: apps.useTls,
    /** Ends all connections. */
    close(): void {
      viewers.end();
      edge.eventReaders.end();
      apps.close();
    },
  };
}

const NO_BYTES = new Uint8Array(0);

/** Called with the complete body of a request, or the reason why it is incomplete. */
function received(answers: Answers, connection: Connection, body: ReceivedBody): void {
  const { line } = connection.request;
  const { queue } = answers.edge;
  if (line === null || typeof body === 'string' || queue.isFree(line)) {
    begin(answers, connection, body);
    return;
  }
  // The bytes of an uncopied body become invalid when this call returns.
  const copy = Buffer.from(body);
  const leave = queue.wait(line, {
    run: () => begin(answers, connection, copy),
    // A document costs too little to be refused.
    shed: line === 'document' ? null : () => refuseLate(answers, connection),
    bytes: copy.byteLength,
  });
  if (leave === null) refuseLate(answers, connection);
  else connection.onGone = leave;
}

function begin(answers: Answers, connection: Connection, body: ReceivedBody): void {
  const { edge, traffic } = answers;
  const { request } = connection;
  connection.generation = traffic.begun();
  connection.onGone = null;
  // The rest of an interrupted body would be read as the next request.
  const isCutShort = typeof body === 'string';
  const reply = answer(edge, request, body);
  if (reply instanceof Promise) {
    if (request.line !== null) edge.queue.began(request.line, reply);
    void reply.then((late) => sendSoon(answers, { connection, reply: late, isCutShort }));
  } else {
    sendSoon(answers, { connection, reply, isCutShort });
  }
}

function refuseLate(answers: Answers, connection: Connection): void {
  connection.generation = answers.traffic.begun();
  connection.onGone = null;
  const reply = shed(answers.edge, connection.request);
  sendSoon(answers, { connection, reply, isCutShort: false });
}

/**
 * Answers of one turn of the event loop are written together at its end. Written individually, they would wake clients
 * whose next requests split one large turn into many small ones, which costs a fifth of all CPU time under load.
 */
function sendSoon(answers: Answers, ready: Ready): void {
  answers.ready.push(ready);
  if (answers.ready.length === 1) setImmediate(() => sendAll(answers));
}

function sendAll(answers: Answers): void {
  const { ready } = answers;
  answers.ready = [];
  for (const each of ready) send(answers, each);
}

function send(
  { edge, traffic, isDraining }: Answers,
  { connection, reply, isCutShort }: Ready,
): void {
  const closing = isCutShort ? 'forced' : isDraining ? 'asked' : 'stays';
  const sending = sendReply(connection, connection.request, reply, closing, edge.queue.turn);
  // Everything sent from now on is a copy.
  if (connection.generation !== null) traffic.read(connection.generation);
  if (sending === null) traffic.left();
  else void sending.then(traffic.left);
}

/**
 * Answers of this thread have no `uWebSockets` header. The call is not documented, and other builds may lack it.
 * Requests that the library refuses by itself, with HTTP/1.0 or a broken head, still get its name in their text.
 */
function omitLibraryName(uws: object): void {
  if ('_cfg' in uws && typeof uws._cfg === 'function') uws._cfg('silent');
}

function loadUws(): typeof import('uWebSockets.js') {
  return createRequire(import.meta.url)('uWebSockets.js');
}
