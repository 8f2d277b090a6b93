/**
 * Reads everything needed from a request's head before its handler returns. Nothing here depends on sockets:
 * `server.ts` passes a head whose accessors are valid only until `openRequest` returns.
 */

import type { JsonObject } from '../../base/json/value.ts';
import { isOperatorRoute } from '../../protocol/route-description.ts';
import type { OperatorHeaders } from '../auth/operator.ts';
import type { Edge } from '../edge.ts';
import { BASE_URL } from '../forward/target.ts';
import { acceptsGzip, prefersHtml } from '../reply.ts';
import { corsRequest } from './cors.ts';
import type { Query } from './parse.ts';
import { forwardedEntry, noteForwarded, type RequestHead, sourceAddress } from './request-head.ts';
import {
  type Client,
  decodePath,
  matchedPath,
  type Request,
  type Route,
  type Router,
} from './route.ts';

/** The HTTP library may accept a longer one if it arrives at once. */
const LONGEST_TARGET = 4096;
/** Answered even while the process stops. */
const LIVENESS_PATH = '/healthz';
const NO_QUERY: Query = {};
const NO_BODY: JsonObject = {};
const NO_PARAMS = {};
const CONNECTED: Client = { aborted: false };
const CLIENT_REQUEST_ID = /^[A-Za-z0-9._:-]{1,128}$/;
const HOST = /^[A-Za-z0-9.:[\]_-]{1,255}$/;

export function openRequest(edge: Edge, findRoute: Router, head: RequestHead): Request {
  const { proxyHops, corsOrigins } = edge.settings;
  const isTooLong = head.path.length + head.query.length > LONGEST_TARGET;
  const path = isTooLong ? null : decodePath(head.path);
  const match = path === null ? 'undecodable' : findRoute(head.method, matchedPath(head.path));
  const isMatched = typeof match === 'object' && 'route' in match;
  const route = isMatched ? match.route : null;
  const isRead = route?.method === 'GET';
  const wantsErrorPage =
    (match === 'not_found' || route?.hasErrorPage === true) &&
    isReading(head) &&
    prefersHtml(head.header('accept'));
  const isRefused = edge.draining.refusesWork && route?.path !== LIVENESS_PATH;
  const isProxied = proxyHops > 0 || head.isForwarded;
  if (!isProxied && route !== null && countsByAddress(edge, route)) noteForwarded(edge, head);
  const operatorHeaders = route === null ? null : operatorHeadersOf(route, head);
  return {
    id: requestIdOf(head, edge),
    started: edge.runtime.elapsed(),
    isRefused,
    isForwarded: head.isForwarded,
    sentMethod: head.method,
    method: route?.method ?? head.method,
    path: path ?? head.path,
    rawPath: isTooLong ? head.path.slice(0, LONGEST_TARGET) : head.path,
    rawQuery: head.query,
    remoteAddr: sourceAddress(head, proxyHops),
    route,
    unmatched: isMatched ? null : match,
    params: isMatched ? match.params : NO_PARAMS,
    takesBody: route !== null && !isRead && !isRefused,
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
    client: CONNECTED,
    now: 0,
    query: NO_QUERY,
    body: NO_BODY,
    node: null,
    operator: null,
  };
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
 * The base URL that an instance has forwarded, otherwise the configured public URL, otherwise the URL that a trusted proxy forwarded, otherwise the host that the client sent.
 */
export function baseUrlOf(head: RequestHead, edge: Edge): string {
  if (head.isForwarded) return head.header(BASE_URL);
  const { publicUrl, proxyHops, scheme } = edge.settings;
  if (publicUrl !== null) return publicUrl;
  const host = forwardedEntry(head, 'x-forwarded-host', proxyHops) ?? head.header('host');
  const forwardedProto = forwardedEntry(head, 'x-forwarded-proto', proxyHops);
  const shown = /^https?$/.test(forwardedProto ?? '') ? forwardedProto : scheme;
  return `${shown}://${HOST.test(host) ? host : 'localhost'}`;
}
