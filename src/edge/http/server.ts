/**
 * Requests and answers on uWebSockets.js, and the only place that deals with its constraints: a request is
 * read before the first wait, an aborted response is never touched, writes are corked, and a body is
 * bounded while it streams in.
 */

import type { HttpRequest, HttpResponse } from 'uWebSockets.js';
import { createRequire } from 'node:module';
import type { TlsFiles } from '../../base/tls/pair.ts';
import { Refusal } from '../../protocol/refusals.ts';
import { maxBodyBytes } from '../../protocol/route-description.ts';
import type { Edge } from '../edge.ts';
import { isPiecewise, type Reply } from '../reply.ts';
import { answer, completed, notePassed, refuse, shed } from '../request/answer.ts';
import { baseUrlOf, hasOneLength, openRequest } from '../request/open-request.ts';
import type { ReceivedBody } from '../request/parse.ts';
import { createPeers, UwsRequestHead } from '../request/request-head.ts';
import { createRouter, isAnsweredElsewhere, type Request, type Route } from '../request/route.ts';
import { openApps } from './listener.ts';
import { type PassedRequest, passedHeaders, passing } from './passing.ts';
import { orCut, type PieceWriter, sendReply } from './send-reply.ts';
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
interface Connection extends PieceWriter {
  readonly request: Request;
  /** Null until its answer is begun. */
  generation: Generation | null;
}

export interface ListenOptions {
  readonly host: string;
  readonly port: number;
  /** Null for plain HTTP. */
  readonly tls: TlsFiles | null;
  /** The Unix socket at which requests arrive that other instances have forwarded; null if none do. */
  readonly socketPath: string | null;
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
    openRequest: (res, req, isForwarded) =>
      openRequest(edge, findRoute, new UwsRequestHead(res, req, peers, isForwarded)),
    leftHttp: peers.closed,
  });

  function take(res: HttpResponse, req: HttpRequest, isForwarded: boolean): void {
    const head = new UwsRequestHead(res, req, peers, isForwarded);
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
    const isElsewhere = isAnsweredElsewhere(edge, request);
    const trustedHops = isForwarded ? 0 : proxyHops;
    // A proxy may forward a body of a request that should have none.
    if ((takesBody || isElsewhere || trustedHops > 0) && !hasOneLength(head, trustedHops)) {
      begin(answers, connection, 'ambiguous');
    } else if (isElsewhere && isForwarded) {
      // It went to an instance that is not active anymore, or not yet.
      settle(answers, connection, refuse(edge, request, new Refusal('authority_unavailable')));
    } else if (isElsewhere) {
      pass(connection, passedRequest(head, req, request));
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

  /** Has the active instance answer. */
  function pass(connection: Connection, passed: PassedRequest): void {
    const { method } = passed;
    if (method === 'GET' || method === 'HEAD') {
      passOn(answers, connection, passed);
      return;
    }
    connection.onGone = uploads.receive(connection.res, maxRequestBytes, (body) => {
      connection.onGone = null;
      if (typeof body !== 'string') {
        // The bytes of an uncopied body become invalid when this call returns.
        passOn(answers, connection, { ...passed, body: Buffer.from(body) });
      } else {
        const refusal = body === 'dropped' ? 'request_timeout' : 'request_entity_too_large';
        const reply = refuse(edge, connection.request, new Refusal(refusal));
        settle(answers, connection, reply, true);
      }
    });
  }

  function passedRequest(head: UwsRequestHead, req: HttpRequest, request: Request): PassedRequest {
    const { sentMethod, route, line } = request;
    const lane = line === 'node' || line === 'operator' ? line : 'public';
    const lines: string[] = [];
    req.forEach((name, value) => {
      lines.push(name, value);
    });
    const { remoteAddr } = request;
    const since = edge.runtime.timeAt(request.started);
    return {
      method: sentMethod,
      target: head.target,
      headers: passedHeaders(lines, { remoteAddr, baseUrl: baseUrlOf(head, edge) }),
      body: null,
      lane: route?.isStream === true ? 'lasting' : lane,
      isSigned: request.operatorHeaders !== null,
      keepsAnswer: route?.keepsAnswer === true,
      noted(status, header) {
        // What depends on the URL of one client must not be shown to another.
        const isKept = route?.hasLastCopy === true && !route.usesBaseUrl && request.rawQuery === '';
        if (!isKept || sentMethod !== 'GET' || edge.forwarder === null) return null;
        const isCompressed = header('content-encoding') === 'gzip';
        const etag = header('etag').replace(/-gzip"$/, '"');
        return edge.forwarder.copies.note(status, {
          path: request.path,
          etag,
          isCompressed,
          since,
        });
      },
    };
  }

  const inner = options.socketPath === null ? null : listenInside(options.socketPath);

  /** Only other instances, and this one, reach this socket. */
  function listenInside(socketPath: string) {
    const app = uws.App();
    app.any(
      '/*',
      orCut((res, req: HttpRequest) => take(res, req, true)),
    );
    viewers.serveOn(app, () => undefined, true);
    let isListening = false;
    app.listen_unix((token) => {
      isListening = Boolean(token);
    }, socketPath);
    if (!isListening) throw new Error(`Cannot listen on ${socketPath}`);
    return app;
  }

  const apps = openApps({
    ...options,
    uws,
    maxConnections,
    peers,
    serve(app, ended) {
      app.any(
        '/*',
        orCut((res, req: HttpRequest) => take(res, req, false)),
      );
      viewers.serveOn(app, ended, false);
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
      inner?.close();
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
  if (reply instanceof Promise && request.line !== null) edge.queue.began(request.line, reply);
  sendSoon(answers, connection, reply, isCutShort);
}

function refuseLate(answers: Answers, connection: Connection): void {
  settle(answers, connection, shed(answers.edge, connection.request));
}

/** Answers a request that nothing else will be done for. */
function settle(
  answers: Answers,
  connection: Connection,
  reply: Reply | Promise<Reply>,
  isCutShort = false,
): void {
  if (connection.aborted) {
    if ('body' in reply && isPiecewise(reply.body)) reply.body.abandon();
    return;
  }
  connection.generation = answers.traffic.begun();
  connection.onGone = null;
  sendSoon(answers, connection, reply, isCutShort);
}

/** Has the active instance answer a request that has arrived completely. */
function passOn(answers: Answers, connection: Connection, passed: PassedRequest): void {
  const { edge } = answers;
  const { request } = connection;
  const copy = edge.lastCopy(request);
  if (copy !== null) settle(answers, connection, completed(edge, request, copy));
  else void answerElsewhere(answers, connection, passed);
}

async function answerElsewhere(
  answers: Answers,
  connection: Connection,
  passed: PassedRequest,
): Promise<void> {
  const { edge } = answers;
  const { request } = connection;
  const forwarded = passing(passed, connection);
  const outcome = (await edge.forwarder?.forward(forwarded)) ?? 'authority_unavailable';
  if (typeof outcome !== 'string') {
    notePassed(edge, request, outcome.requestId, outcome.reply.status);
    return settle(answers, connection, outcome.reply);
  }
  if (connection.aborted) return;
  // While the request was held, it may have become known that nobody is active.
  const copy = outcome === 'authority_unavailable' ? edge.lastCopy(request) : null;
  const details = outcome === 'outcome_unknown' ? { outcome: 'unknown' } : {};
  const reply =
    copy === null
      ? refuse(edge, request, new Refusal(outcome, details))
      : completed(edge, request, copy);
  settle(answers, connection, reply);
}

/**
 * Answers of one turn of the event loop are written together at its end. Written individually, they would wake clients
 * whose next requests split one large turn into many small ones, which costs a fifth of all CPU time under load.
 */
function sendSoon(
  answers: Answers,
  connection: Connection,
  reply: Reply | Promise<Reply>,
  isCutShort: boolean,
): void {
  if (reply instanceof Promise) {
    void reply.then((late) => sendSoon(answers, connection, late, isCutShort));
    return;
  }
  answers.ready.push({ connection, reply, isCutShort });
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
