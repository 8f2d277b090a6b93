/**
 * One request in order: id, route, limit, body, access, handler, reply, log line. Nothing here knows
 * sockets: `server.ts` hands in a head whose accessors are valid only until `openExchange` returns.
 *
 * What a request needs on its way is one plain object, and the steps are plain functions over it:
 * closures made anew for each request would cost as much as parsing it.
 */
import { judgeOperator, type OperatorHeaders } from '../auth/operator.ts';
import type { SignedRequest } from '../auth/signed-request.ts';
import type { OperatorClaim } from '../contract/claims.ts';
import type { JsonObject } from '../json/value.ts';
import { problemText } from '../log/problem.ts';
import { Refusal } from '../refusal.ts';
import { parseBody } from './body.ts';
import type { Edge } from './edge.ts';
import { decodePath, parseQuery, type Query } from './query.ts';
import type { RateBucket } from './rate-limit.ts';
import {
  acceptsGzip,
  errorEnvelope,
  isPiecewise,
  type PiecewiseBody,
  type Reply,
  refusalReply,
} from './reply.ts';
import { isOperatorRoute, type Route } from './route.ts';
import type { Match, Router } from './router.ts';
import { sourceAddress } from './source-address.ts';
import type { ReceivedBody } from './uploads.ts';

export interface RequestHead {
  /** Upper case. */
  readonly method: string;
  /** As sent, percent-encoded, without query. */
  readonly path: string;
  readonly query: string;
  /** Value of a header by its lower-case name; empty when absent. */
  header(name: string): string;
  /** The values of all lines of a header; none when it is absent. */
  headerLines(name: string): readonly string[];
  peerAddress(): string;
}

export interface FinishedReply extends Reply {
  readonly requestId: string;
}

/** A request whose head was read, and which now waits for its body. */
export interface Exchange {
  /** False when the answer does not depend on a body. */
  readonly takesBody: boolean;
  /** Bytes a body may have. */
  readonly maxBodyBytes: number;
  readonly requestId: string;
  /** Milliseconds on the monotonic clock. */
  readonly started: number;
  readonly method: string;
  /** Percent-decoded; as sent when it cannot be decoded. */
  readonly path: string;
  readonly query: string;
  readonly remoteAddr: string;
  readonly match: Match | 'undecodable';
  readonly operatorHeaders: OperatorHeaders | null;
  readonly nodeProof: string;
  readonly ifNoneMatch: string;
  readonly acceptsGzip: boolean;
  readonly baseUrl: string;
}

const CLIENT_REQUEST_ID = /^[A-Za-z0-9._:-]{1,128}$/;
const HOST = /^[A-Za-z0-9.:[\]_-]{1,255}$/;
const NO_QUERY: Query = {};
const NO_BODY: JsonObject = {};

/** Reads all that is needed of a request's head. */
export function openExchange(edge: Edge, findRoute: Router, head: RequestHead): Exchange {
  const { proxyHops } = edge.settings;
  const decodedPath = decodePath(head.path);
  const match = decodedPath === null ? 'undecodable' : findRoute(head.method, head.path);
  const route = routeOf(match);
  const isRead = route?.method === 'GET';
  return {
    takesBody: route !== null && !isRead,
    maxBodyBytes: Math.min(edge.settings.maxRequestBytes, route?.maxBodyBytes ?? Infinity),
    requestId: requestIdOf(head, edge),
    started: edge.runtime.elapsed(),
    method: head.method,
    path: decodedPath ?? head.path,
    query: head.query,
    remoteAddr: sourceAddress(head, proxyHops),
    match,
    operatorHeaders: route === null ? null : operatorHeadersOf(route, head),
    nodeProof: route?.access === 'node' ? head.header('x-mesh-node-proof') : '',
    ifNoneMatch: isRead ? head.header('if-none-match') : '',
    acceptsGzip: isRead && acceptsGzip(head.header('accept-encoding')),
    baseUrl: isRead ? baseUrlOf(head, edge) : '',
  };
}

/** Answers with the body that arrived, or to its not having arrived in whole. */
export function finishExchange(
  edge: Edge,
  exchange: Exchange,
  body: ReceivedBody,
): FinishedReply | Promise<FinishedReply> {
  try {
    const reply = answer(edge, exchange, body);
    if (!(reply instanceof Promise)) return finished(edge, exchange, reply);
    return reply.then(
      (settled) => finished(edge, exchange, settled),
      (cause) => finished(edge, exchange, replyToError(cause, edge, exchange.requestId)),
    );
  } catch (cause) {
    return finished(edge, exchange, replyToError(cause, edge, exchange.requestId));
  }
}

function answer(edge: Edge, exchange: Exchange, rawBody: ReceivedBody): Reply | Promise<Reply> {
  const { match, remoteAddr } = exchange;
  if (typeof match === 'string' || 'allow' in match) return unmatched(match);
  if (rawBody === 'dropped') return refusalReply('request_timeout');
  const { route } = match;
  const now = edge.runtime.now();
  if (route.limit === 'none') return admitted(edge, exchange, match, rawBody, now);
  // A limit is per address; verification endpoints have one bucket each (wire rules 4.1).
  const key = route.limit === 'VERIFY' ? `${route.path} ${remoteAddr}` : remoteAddr;
  const wait = edge.limits.take(route.limit, key, now);
  if (wait === 0) return admitted(edge, exchange, match, rawBody, now);
  if (!(wait instanceof Promise)) return limited(edge, route.limit, wait);
  // The bytes of a body are gone once this call returns.
  const kept = rawBody === 'too_large' ? rawBody : rawBody.slice();
  const { limit } = route;
  return wait.then((seconds) =>
    seconds === 0 ? admitted(edge, exchange, match, kept, now) : limited(edge, limit, seconds),
  );
}

/** Handles a request that its rate limit lets pass. */
function admitted(
  edge: Edge,
  exchange: Exchange,
  { route, params }: Exclude<Match, string | { readonly allow: string }>,
  rawBody: Uint8Array | 'too_large',
  now: number,
): Reply | Promise<Reply> {
  const { remoteAddr } = exchange;
  if (rawBody === 'too_large') return refusalReply('request_entity_too_large');
  const request = {
    method: route.method,
    path: exchange.path,
    query: exchange.query === '' ? NO_QUERY : parseQuery(exchange.query),
    body: exchange.takesBody ? parseBody(rawBody) : NO_BODY,
    rawBody,
    id: exchange.requestId,
    params,
    now,
    remoteAddr,
    baseUrl: exchange.baseUrl,
    ifNoneMatch: exchange.ifNoneMatch,
    acceptsGzip: exchange.acceptsGzip,
    nodeProof: exchange.nodeProof,
    operator: null as OperatorClaim | null,
  };
  request.operator = claimOf(edge, exchange, route, request, now);
  return route.handle(request, edge);
}

function claimOf(
  edge: Edge,
  { operatorHeaders, remoteAddr }: Exchange,
  { path: scope }: Route,
  signed: SignedRequest,
  now: number,
): OperatorClaim | null {
  if (operatorHeaders === null) return null;
  const judged = judgeOperator(operatorHeaders, signed, edge.settings.operatorAuth, now);
  return { ...judged, scope, remoteAddr };
}

/** Completes a reply and tells metrics and log of it; nothing after this can change the answer. */
function finished(edge: Edge, exchange: Exchange, reply: Reply): FinishedReply {
  const { requestId } = exchange;
  const status = reply.status === 200 ? successStatus(edge, routeOf(exchange.match)) : reply.status;
  const { contentType, headerLines, refusal, contentSecurityPolicy } = reply;
  const body =
    refusal === null ? reply.body : errorEnvelope(refusal, String(reply.body), requestId);
  const isWhole = !isPiecewise(body);
  if (isWhole) tell(edge, exchange, status);
  return {
    status,
    contentType,
    body: isWhole ? body : followed(body, edge, requestId, () => tell(edge, exchange, status)),
    headerLines,
    refusal,
    contentSecurityPolicy,
    requestId,
  };
}

function tell(
  edge: Edge,
  { started, method, path, match, requestId, remoteAddr }: Exchange,
  status: number,
): void {
  const elapsed = edge.runtime.elapsed() - started;
  edge.metrics.request(method, routeOf(match)?.path ?? 'unmatched', status, elapsed / 1000);
  edge.logger.request({
    request_id: requestId,
    method,
    path,
    status,
    duration_ms: Math.round(elapsed * 1000) / 1000,
    remote_addr: remoteAddr,
  });
}

/** The body, whose end is told: all of it was sent, the client has gone, or it could not be completed. */
function followed(
  body: PiecewiseBody,
  edge: Edge,
  requestId: string,
  tellEnd: () => void,
): PiecewiseBody {
  return {
    async next() {
      try {
        const piece = await body.next();
        if (piece === null) tellEnd();
        return piece;
      } catch (cause) {
        logProblem(edge, requestId, cause);
        tellEnd();
        throw cause;
      }
    },
    abandon() {
      body.abandon();
      tellEnd();
    },
  };
}

function successStatus({ settings }: Edge, route: Route | null): number {
  if (route?.created === undefined) return 200;
  return route.created === 'always' ? 201 : settings.createdStatus;
}

function routeOf(match: Match | 'undecodable'): Route | null {
  return typeof match === 'string' || 'allow' in match ? null : match.route;
}

function requestIdOf(head: RequestHead, edge: Edge): string {
  const claimed = head.header('x-request-id');
  return claimed !== '' && CLIENT_REQUEST_ID.test(claimed) ? claimed : edge.runtime.uuid();
}

function unmatched(match: 'undecodable' | 'not_found' | { readonly allow: string }): Reply {
  if (match === 'undecodable') return refusalReply('bad_request');
  if (match === 'not_found') return refusalReply('not_found');
  return refusalReply('method_not_allowed', {}, 'Allow', match.allow);
}

/** The four headers of an operator route, or of a public one that was sent any of them. */
function operatorHeadersOf(route: Route, head: RequestHead): OperatorHeaders | null {
  const optional = route.access === 'public-or-operator';
  if (!optional && !isOperatorRoute(route)) return null;
  const headers = {
    keyId: head.header('x-admin-key-id'),
    timestamp: head.header('x-admin-timestamp'),
    nonce: head.header('x-admin-nonce'),
    signature: head.header('x-admin-signature'),
  };
  return optional && !OPERATOR_HEADERS.some((name) => isPresent(head, name)) ? null : headers;
}

const OPERATOR_HEADERS = [
  'x-admin-key-id',
  'x-admin-timestamp',
  'x-admin-nonce',
  'x-admin-signature',
] as const;

/** An empty header is present too: a caller that sends one means to be an operator. */
function isPresent(head: RequestHead, name: string): boolean {
  return head.header(name) !== '' || head.headerLines(name).length > 0;
}

/** The configured public URL, else what a trusted proxy forwarded, else what the client asked for. */
function baseUrlOf(head: RequestHead, edge: Edge): string {
  const { publicUrl, proxyHops } = edge.settings;
  if (publicUrl !== null) return publicUrl;
  const forwardedHost = proxyHops > 0 ? head.header('x-forwarded-host') : '';
  const forwardedProto = proxyHops > 0 ? head.header('x-forwarded-proto') : '';
  const host = forwardedHost || head.header('host');
  const scheme = forwardedProto === 'https' ? 'https' : 'http';
  return `${scheme}://${HOST.test(host) ? host : 'localhost'}`;
}

export function limited(edge: Edge, bucket: RateBucket, retryAfterSeconds: number): Reply {
  edge.metrics.rateLimited(bucket);
  return refusalReply('rate_limit_exceeded', {}, 'Retry-After', String(retryAfterSeconds));
}

/** A refusal becomes its reply; anything else is a bug: told to the log, and to the client only as 500. */
function replyToError(cause: unknown, edge: Edge, requestId: string): Reply {
  if (cause instanceof Refusal) return refusalReply(cause.refusal, cause.details);
  logProblem(edge, requestId, cause);
  return refusalReply('internal_server_error');
}

function logProblem({ logger }: Edge, requestId: string, cause: unknown): void {
  logger.write('ERROR', 'http', `request_id=${requestId} ${problemText(cause)}`);
}
