/**
 * Reads everything needed from a request's head before its handler returns. Nothing here depends on sockets:
 * `server.ts` passes a head whose accessors are valid only until `openExchange` returns.
 */

import type { JsonObject } from '../base/json/value.ts';
import { isOperatorRoute, maxBodyBytes } from '../protocol/route-description.ts';
import type { JudgedHeaders, OperatorHeaders } from './auth/operator.ts';
import { type CorsRequest, corsRequest } from './cors.ts';
import type { Edge } from './edge.ts';
import type { Query } from './query.ts';
import { acceptsGzip, prefersHtml, type Reply } from './reply.ts';
import { forwardedEntry, noteForwarded, type RequestHead, sourceAddress } from './request-head.ts';
import type { Line } from './request-queue.ts';
import type { Client, Route, RouteRequest } from './route.ts';
import { decodePath, type Match, matchedPath, type Router } from './router.ts';

/** A request whose head was read and whose body is still arriving. */
export interface Exchange {
  /** The process is stopping and accepts no new work. */
  readonly isRefused: boolean;
  /** False if the answer does not depend on a body. */
  readonly takesBody: boolean;
  /** The most bytes of a body. */
  readonly maxBodyBytes: number;
  readonly requestId: string;
  /** Milliseconds on the monotonic clock. */
  readonly started: number;
  readonly method: string;
  /** Percent-decoded; as sent if it cannot be decoded. */
  readonly path: string;
  /** As sent. */
  readonly rawPath: string;
  readonly query: string;
  readonly remoteAddr: string;
  readonly match: Match | 'undecodable';
  /** The line in which the request waits; null if it does not wait. */
  readonly line: Line | null;
  readonly operatorHeaders: OperatorHeaders | null;
  readonly nodeProof: string;
  /** The header of a heartbeat session; empty if there is none. */
  readonly session: string;
  /** Whether the request may have arrived before, and its answer is kept. */
  readonly isRepeat: boolean;
  readonly ifNoneMatch: string;
  readonly acceptsGzip: boolean;
  /** Empty unless the route answers with a stream. */
  readonly lastEventId: string;
  /** Whether the client prefers an HTML page if the path, or the item it names, does not exist. */
  readonly wantsErrorPage: boolean;
  readonly baseUrl: string;
  /** Null if no origins are configured. */
  readonly cors: CorsRequest | null;
}

/** A request with its body and route, to which the steps of the pipeline add what they determine. */
export interface Received {
  readonly exchange: Exchange;
  readonly route: Route;
  /** The bytes belong to uWebSockets.js and are valid only until the first wait, or they are a copy. */
  body: Uint8Array | 'too_large';
  /** The verdict on the operator headers alone; null before they are checked, and without them. */
  headers: JudgedHeaders | null;
  readonly request: { -readonly [Member in keyof RouteRequest]: RouteRequest[Member] };
}

/** The result of a pipeline step: null to continue with the next one, or the reply that ends the request. */
export type StepResult = Reply | null | Promise<Reply | null>;

/** The body of a request that has none, or whose body was read. */
export const NO_BYTES = new Uint8Array(0);

/** The HTTP library may accept a longer one if it arrives at once. */
const LONGEST_TARGET = 4096;
/** Answered even while the process stops. */
const LIVENESS_PATH = '/healthz';
const NO_QUERY: Query = {};
const NO_BODY: JsonObject = {};
const CLIENT_REQUEST_ID = /^[A-Za-z0-9._:-]{1,128}$/;
const HOST = /^[A-Za-z0-9.:[\]_-]{1,255}$/;

export function openExchange(edge: Edge, findRoute: Router, head: RequestHead): Exchange {
  const { proxyHops, corsOrigins } = edge.settings;
  const isTooLong = head.path.length + head.query.length > LONGEST_TARGET;
  const decodedPath = isTooLong ? null : decodePath(head.path);
  const match =
    decodedPath === null ? 'undecodable' : findRoute(head.method, matchedPath(head.path));
  const route = routeOf(match);
  const isRead = route?.method === 'GET';
  const wantsErrorPage =
    (match === 'not_found' || route?.hasErrorPage === true) &&
    isReading(head) &&
    prefersHtml(head.header('accept'));
  const isRefused = edge.draining.refusesWork && route?.path !== LIVENESS_PATH;
  if (proxyHops === 0 && route !== null && countsByAddress(edge, route)) noteForwarded(edge, head);
  const operatorHeaders = route === null ? null : operatorHeadersOf(route, head);
  return {
    isRefused,
    takesBody: route !== null && !isRead && !isRefused,
    maxBodyBytes: route === null ? 0 : Math.min(edge.settings.maxRequestBytes, maxBodyBytes(route)),
    requestId: requestIdOf(head, edge),
    started: edge.runtime.elapsed(),
    method: head.method,
    path: decodedPath ?? head.path,
    rawPath: isTooLong ? head.path.slice(0, LONGEST_TARGET) : head.path,
    query: head.query,
    remoteAddr: sourceAddress(head, proxyHops),
    match,
    line: isRefused || route === null ? null : operatorHeaders === null ? route.line : 'operator',
    operatorHeaders,
    nodeProof: route?.access === 'node' ? head.header('x-mesh-node-proof') : '',
    session: route?.hasSessions === true ? head.header('x-mesh-session') : '',
    isRepeat: route?.keepsAnswer === true && head.header('x-mesh-retry') === '1',
    ifNoneMatch: isRead ? head.header('if-none-match') : '',
    acceptsGzip: (isRead || wantsErrorPage) && acceptsGzip(head.header('accept-encoding')),
    lastEventId: route?.isStream === true ? head.header('last-event-id') : '',
    wantsErrorPage,
    baseUrl: route?.usesBaseUrl === true ? baseUrlOf(head, edge) : '',
    cors: corsOrigins === null ? null : corsRequest(corsOrigins, head),
  };
}

/** A request as its handler sees it, with only the head filled in. */
export function received(
  exchange: Exchange,
  { route, params }: Extract<Match, { readonly route: Route }>,
  body: Received['body'],
  client: Client,
): Received {
  const request = {
    method: route.method,
    path: exchange.path,
    query: NO_QUERY,
    body: NO_BODY,
    id: exchange.requestId,
    params,
    now: 0,
    remoteAddr: exchange.remoteAddr,
    baseUrl: exchange.baseUrl,
    ifNoneMatch: exchange.ifNoneMatch,
    acceptsGzip: exchange.acceptsGzip,
    lastEventId: exchange.lastEventId,
    wantsErrorPage: exchange.wantsErrorPage,
    operator: null,
    node: null,
    client,
  };
  return { exchange, route, body, headers: null, request };
}

function isReading({ method }: RequestHead): boolean {
  return method === 'GET' || method === 'HEAD';
}

/** Whether the client's address matters for a rate limit of the route. */
function countsByAddress({ limits }: Edge, { limit }: Route): boolean {
  return limit !== 'none' && limits.isOn(limit);
}

/**
 * False if a proxy may have read a different body length than uWebSockets.js, which uses the first of several
 * Content-Length lines and reads any Transfer-Encoding but `identity` as chunks. Repeated lines are checked only behind
 * a proxy: a direct client can only mislead itself.
 */
export function hasOneLength(head: RequestHead, proxyHops: number): boolean {
  const encoding = head.header('transfer-encoding');
  if (encoding !== '' && encoding.toLowerCase() !== 'chunked') return false;
  if (proxyHops === 0) return true;
  return BODY_LENGTHS.every((name) => head.headerLines(name).length <= 1);
}

const BODY_LENGTHS = ['content-length', 'transfer-encoding'];

export function routeOf(match: Match | 'undecodable'): Route | null {
  return typeof match === 'string' || 'allow' in match ? null : match.route;
}

function requestIdOf(head: RequestHead, edge: Edge): string {
  const claimed = head.header('x-request-id');
  return claimed !== '' && CLIENT_REQUEST_ID.test(claimed) ? claimed : edge.runtime.uuid();
}

/** The four headers of an operator route, or of a public route with any of them. */
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

/** An empty header counts as present: a caller that sends one claims to be an operator. */
function isPresent(head: RequestHead, name: string): boolean {
  return head.header(name) !== '' || head.headerLines(name).length > 0;
}

/**
 * The configured public URL, otherwise the URL that a trusted proxy forwarded, otherwise the host that the client sent.
 */
function baseUrlOf(head: RequestHead, edge: Edge): string {
  const { publicUrl, proxyHops, scheme } = edge.settings;
  if (publicUrl !== null) return publicUrl;
  const host = forwardedEntry(head, 'x-forwarded-host', proxyHops) ?? head.header('host');
  const forwardedProto = forwardedEntry(head, 'x-forwarded-proto', proxyHops);
  const shown = /^https?$/.test(forwardedProto ?? '') ? forwardedProto : scheme;
  return `${shown}://${HOST.test(host) ? host : 'localhost'}`;
}
