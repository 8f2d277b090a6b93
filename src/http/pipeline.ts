/**
 * One request in order: id, route, limit, body, access, handler, reply, log line. Nothing here knows
 * sockets: `server.ts` hands in a head whose accessors are valid only until `open` returns.
 */
import { judgeOperator } from '../auth/operator.ts';
import type { OperatorClaim } from '../authority/commands.ts';
import type { JsonObject } from '../json/value.ts';
import { Refusal } from '../refusal.ts';
import { parseBody } from './body.ts';
import type { Edge } from './edge.ts';
import { decodePath, parseQuery, type Query } from './query.ts';
import { errorEnvelope, type Reply, refusalReply } from './reply.ts';
import { isOperatorRoute, type Route, type RouteRequest } from './route.ts';
import { createRouter } from './router.ts';
import { sourceAddress } from './source-address.ts';

export interface RequestHead {
  /** Upper case. */
  readonly method: string;
  /** As sent, percent-encoded, without query. */
  readonly path: string;
  readonly query: string;
  /** Value of a header by its lower-case name; empty when absent. */
  header(name: string): string;
  peerAddress(): string;
}

export interface FinishedReply extends Reply {
  readonly requestId: string;
}

export interface Exchange {
  /** False when the answer does not depend on a body. */
  readonly takesBody: boolean;
  /** Answers with the body that arrived; `too_large` when it passed the limit. */
  finish(body: Uint8Array | 'too_large'): FinishedReply | Promise<FinishedReply>;
}

const CLIENT_REQUEST_ID = /^[A-Za-z0-9._:-]{1,128}$/;
const HOST = /^[A-Za-z0-9.:[\]_-]{1,255}$/;
const NO_BODY = new Uint8Array(0);
const NO_QUERY: Query = {};
const OPERATOR_HEADERS = {
  keyId: 'x-admin-key-id',
  timestamp: 'x-admin-timestamp',
  nonce: 'x-admin-nonce',
  signature: 'x-admin-signature',
} as const;

export function createPipeline(edge: Edge): (head: RequestHead) => Exchange {
  const findRoute = createRouter(edge.routes);

  return function open(head) {
    const started = edge.runtime.elapsed();
    const { method, path } = head;
    const requestId = requestIdOf(head, edge);
    const { proxyHops } = edge.settings;
    const remoteAddr = sourceAddress(
      head.peerAddress(),
      proxyHops === 0 ? '' : head.header('x-forwarded-for'),
      proxyHops,
    );
    const decodedPath = decodePath(path);
    const match = decodedPath === null ? 'undecodable' : findRoute(method, path);

    function finished(reply: Reply, template: string): FinishedReply {
      const elapsed = edge.runtime.elapsed() - started;
      edge.metrics.request(method, template, reply.status, elapsed / 1000);
      edge.logger.request({
        request_id: requestId,
        method,
        path: decodedPath ?? path,
        status: reply.status,
        duration_ms: Math.round(elapsed * 1000) / 1000,
        remote_addr: remoteAddr,
      });
      if (reply.refusal === null) return { ...reply, requestId };
      const body = errorEnvelope(reply.refusal, String(reply.body), requestId);
      return { ...reply, body, requestId };
    }

    if (typeof match === 'string' || 'allow' in match) {
      const reply = unmatched(match);
      return { takesBody: false, finish: () => finished(reply, 'unmatched') };
    }

    const { route, params } = match;
    const operatorHeaders = operatorHeadersOf(route, head);
    const nodeProof = route.access === 'node' ? head.header('x-mesh-node-proof') : '';
    const isRead = route.method === 'GET';
    const ifNoneMatch = isRead ? head.header('if-none-match') : '';
    const baseUrl = isRead ? baseUrlOf(head, edge) : '';

    function answer(rawBody: Uint8Array | 'too_large'): Reply | Promise<Reply> {
      const now = edge.runtime.now();
      const limited = spendLimit(edge, route, remoteAddr, now);
      if (limited !== null) return limited;
      if (rawBody === 'too_large') return refusalReply('request_entity_too_large');
      const signed = {
        method: route.method,
        path: decodedPath ?? path,
        query: head.query === '' ? NO_QUERY : parseQuery(head.query),
        body: isRead ? ({} as JsonObject) : parseBody(rawBody),
        rawBody,
      };
      const request: RouteRequest = {
        ...signed,
        id: requestId,
        params,
        now,
        remoteAddr,
        baseUrl,
        ifNoneMatch,
        nodeProof,
        operator: claimOf(operatorHeaders, signed, now),
      };
      return route.handle(request, edge);
    }

    function claimOf(
      headers: ReturnType<typeof operatorHeadersOf>,
      signed: Parameters<typeof judgeOperator>[1],
      now: number,
    ): OperatorClaim | null {
      if (headers === null) return null;
      const judged = judgeOperator(headers, signed, edge.settings.operatorAuth, now);
      return { ...judged, scope: route.path, remoteAddr };
    }

    function recovered(cause: unknown): FinishedReply {
      return finished(replyToError(cause, edge, requestId), route.path);
    }

    return {
      takesBody: !isRead,
      finish(body) {
        try {
          const reply = answer(isRead ? NO_BODY : body);
          return reply instanceof Promise
            ? reply.then((settled) => finished(settled, route.path)).catch(recovered)
            : finished(reply, route.path);
        } catch (cause) {
          return recovered(cause);
        }
      },
    };
  };
}

function requestIdOf(head: RequestHead, edge: Edge): string {
  const claimed = head.header('x-request-id');
  return claimed !== '' && CLIENT_REQUEST_ID.test(claimed) ? claimed : edge.runtime.uuid();
}

function unmatched(match: 'undecodable' | 'not_found' | { readonly allow: string }): Reply {
  if (match === 'undecodable') return refusalReply('bad_request');
  if (match === 'not_found') return refusalReply('not_found');
  return refusalReply('method_not_allowed', {}, [['Allow', match.allow]]);
}

/** The four headers of an operator route, or of a public one that was sent any of them. */
function operatorHeadersOf(route: Route, head: RequestHead) {
  const optional = route.access === 'public-or-operator';
  if (!optional && !isOperatorRoute(route)) return null;
  const headers = {
    keyId: head.header(OPERATOR_HEADERS.keyId),
    timestamp: head.header(OPERATOR_HEADERS.timestamp),
    nonce: head.header(OPERATOR_HEADERS.nonce),
    signature: head.header(OPERATOR_HEADERS.signature),
  };
  const absent = Object.values(headers).every((value) => value === '');
  return optional && absent ? null : headers;
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

function spendLimit(edge: Edge, route: Route, remoteAddr: string, now: number): Reply | null {
  if (route.limit === 'none') return null;
  const limiter = edge.limits[route.limit];
  const retryAfter = limiter.retryAfter(remoteAddr, now);
  if (retryAfter === 0) {
    limiter.count(remoteAddr, now);
    return null;
  }
  edge.metrics.rateLimited(route.limit);
  return rateLimitReply(retryAfter);
}

export function rateLimitReply(retryAfterSeconds: number): Reply {
  return refusalReply('rate_limit_exceeded', {}, [['Retry-After', String(retryAfterSeconds)]]);
}

/** A refusal becomes its reply; anything else is a bug: told to the log, and to the client only as 500. */
function replyToError(cause: unknown, edge: Edge, requestId: string): Reply {
  if (cause instanceof Refusal) return refusalReply(cause.refusal, cause.details);
  const problem = cause instanceof Error ? (cause.stack ?? cause.message) : String(cause);
  edge.logger.write('ERROR', 'http', `request_id=${requestId} ${problem.replace(/\s+/g, ' ')}`);
  return refusalReply('internal_server_error');
}
