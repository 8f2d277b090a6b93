/**
 * From a body to the handler: limit, syntax, proof, in the order of [core-2-3]. Every proof is judged here,
 * so that no handler can forget it, and before the first wait: the bytes of a body belong to uWebSockets.js
 * and become invalid when its callback returns.
 */
import { judgeNode } from '../auth/node.ts';
import { judgeOperatorHeaders, judgeSignature, type OperatorHeaders } from '../auth/operator.ts';
import { sendingOf } from '../auth/sending.ts';
import type { NodeClaim, OperatorClaim } from '../contract/claims.ts';
import type { JsonObject } from '../json/value.ts';
import { REFUSALS, Refusal } from '../refusal.ts';
import { parseBody } from './body.ts';
import { preflightReply } from './cors.ts';
import { type Edge, withAnswer } from './edge.ts';
import type { Exchange } from './exchange.ts';
import { countedFailure, limited } from './limited.ts';
import { mayArrive } from './operator-keys.ts';
import { parseQuery, type Query } from './query.ts';
import { errorPageReply, type Reply, refusalReply } from './reply.ts';
import type { Route, RouteRequest } from './route.ts';
import { maxBodyValues } from './route-description.ts';
import type { Match } from './router.ts';
import { addressBlock } from './source-address.ts';
import { isLargeBody, type Sender } from './unproven-bodies.ts';
import type { ReceivedBody } from './uploads.ts';

type Found = Extract<Match, { readonly route: Route }>;
type Body = Uint8Array | 'too_large';

const NO_QUERY: Query = {};
const NO_BODY: JsonObject = {};

/**
 * The largest body that is still judged after the sender has failed too often: enough for all but imports.
 */
const LARGEST_THROTTLED_BODY = 16 * 1024;

export function answerExchange(
  edge: Edge,
  exchange: Exchange,
  body: ReceivedBody,
): Reply | Promise<Reply> {
  const { match } = exchange;
  if (exchange.cors?.isPreflight === true) return preflightReply();
  if (body === 'ambiguous') return refusalReply('ambiguous_body');
  if (typeof match === 'string' || 'allow' in match) return unmatched(edge, exchange, match);
  if (body === 'dropped') return refusalReply('request_timeout');
  if (exchange.operatorHeaders !== null && mayArrive(edge, exchange.operatorHeaders.keyId)) {
    const copy = copyOf(body);
    const published = Promise.resolve(edge.call('awaitPublications', null));
    return published.then((answer) =>
      !answer.ok && answer.refusal === 'authority_unavailable'
        ? refusalReply(answer.refusal)
        : limitedThenHandled(edge, exchange, match, copy),
    );
  }
  return limitedThenHandled(edge, exchange, match, body);
}

function limitedThenHandled(
  edge: Edge,
  exchange: Exchange,
  match: Found,
  body: Body,
): Reply | Promise<Reply> {
  const { route } = match;
  const now = receivedAt(edge, exchange);
  if (exchange.operatorHeaders !== null && edge.limits.isOn('ADMIN_FAILURES')) {
    return proofFirst(edge, exchange, match, body, now);
  }
  if (route.limit === 'none' || !edge.limits.isOn(route.limit)) {
    return handled(edge, exchange, match, body, now);
  }
  const wait = edge.limits.take(route.limit, limitKey(route, exchange), now);
  if (wait === 0) return handled(edge, exchange, match, body, now);
  if (!(wait instanceof Promise)) return limited(edge, route.limit, wait);
  const { limit } = route;
  const copy = copyOf(body);
  return wait.then((seconds) =>
    seconds === 0 ? handled(edge, exchange, match, copy, now) : limited(edge, limit, seconds),
  );
}

/** A request without a body is answered as it arrives. */
function receivedAt({ runtime }: Edge, { takesBody, started }: Exchange): number {
  return takesBody ? runtime.now() : runtime.timeAt(started);
}

function unmatched(
  edge: Edge,
  { wantsErrorPage, rawPath }: Exchange,
  match: 'undecodable' | 'not_found' | { readonly allow: string },
): Reply {
  const page = wantsErrorPage ? edge.notFoundPage(rawPath) : null;
  if (page !== null) return errorPageReply(REFUSALS.not_found.status, page);
  if (match === 'undecodable') return refusalReply('bad_request');
  if (match === 'not_found') return refusalReply('not_found');
  return refusalReply('method_not_allowed', {}, 'Allow', match.allow);
}

/** A limit is per source; verification endpoints have one bucket each [core-4-1]. */
function limitKey({ limit, path }: Route, { remoteAddr }: Exchange): string {
  const source = addressBlock(remoteAddr);
  return limit === 'VERIFY' ? `${path} ${source}` : source;
}

/** The bytes of a body in one piece become invalid when this call returns. */
function copyOf(body: Body): Body {
  return body === 'too_large' ? body : Buffer.from(body);
}

function handled(
  edge: Edge,
  exchange: Exchange,
  found: Found,
  body: Body,
  now: number,
): Reply | Promise<Reply> {
  const seconds = untilRead(edge, exchange, body, now);
  if (seconds > 0) return limited(edge, 'ADMIN_FAILURES', seconds);
  return found.route.handle(judged(edge, exchange, found, body, now), edge);
}

/** Seconds until a large body in the name of an operator's key would be read; 0 when it is to be read now. */
function untilRead(edge: Edge, exchange: Exchange, body: Body, now: number): number {
  const { operatorHeaders: headers, takesBody } = exchange;
  if (headers === null || !takesBody || body === 'too_large' || !isLargeBody(body)) return 0;
  const { verdict } = judgeOperatorHeaders(headers, edge.settings.operatorAuth, now);
  return verdict === 'valid' ? edge.unprovenBodies.take(senderOf(exchange, headers), now) : 0;
}

function senderOf({ remoteAddr }: Exchange, { keyId }: OperatorHeaders): Sender {
  return { source: addressBlock(remoteAddr), keyId };
}

/**
 * With a limit on failed operator proofs, failures are counted there and never in the limit of the
 * operators. A proof that verifies passes even after its source has failed too often, so that strangers at
 * the same address cannot lock operators out. Only large bodies are then refused unread, because reading
 * them is the cost.
 */
function proofFirst(
  edge: Edge,
  exchange: Exchange,
  found: Found,
  body: Body,
  now: number,
): Reply | Promise<Reply> {
  const key = failureKey(edge, exchange);
  if (body === 'too_large' || body.byteLength <= LARGEST_THROTTLED_BODY) {
    return proven(edge, exchange, found, body, now, key);
  }
  const copy = copyOf(body);
  return withAnswer(edge.limits.wait('ADMIN_FAILURES', key, now), (seconds) =>
    seconds > 0
      ? limited(edge, 'ADMIN_FAILURES', seconds)
      : proven(edge, exchange, found, copy, now, key),
  );
}

/** Unknown key ids share one entry; otherwise each made-up id would have a fresh allowance. */
function failureKey({ settings }: Edge, { remoteAddr, operatorHeaders }: Exchange): string {
  const { keyId = '' } = operatorHeaders ?? {};
  return `${addressBlock(remoteAddr)} ${settings.operatorAuth.keys.has(keyId) ? keyId : ''}`;
}

function proven(
  edge: Edge,
  exchange: Exchange,
  found: Found,
  body: Body,
  now: number,
  key: string,
): Reply | Promise<Reply> {
  const { route } = found;
  const unread = untilRead(edge, exchange, body, now);
  if (unread > 0) return limited(edge, 'ADMIN_FAILURES', unread);
  const request = judgedOrRefused(edge, exchange, found, body, now);
  if ('refusal' in request) {
    return countedFailure(edge, 'ADMIN_FAILURES', key, now, () => request);
  }
  if (request.operator?.verdict !== 'valid') {
    return countedFailure(edge, 'ADMIN_FAILURES', key, now, () => route.handle(request, edge));
  }
  const { limit } = route;
  if (limit === 'none') {
    return withAnswer(route.handle(request, edge), (reply) =>
      isUnauthenticated(reply)
        ? countedFailure(edge, 'ADMIN_FAILURES', key, now, () => reply)
        : reply,
    );
  }
  const source = limitKey(route, exchange);
  return withAnswer(edge.limits.take(limit, source, now), (seconds) => {
    if (seconds > 0) return limited(edge, limit, seconds);
    return withAnswer(route.handle(request, edge), (reply) => {
      if (!isUnauthenticated(reply)) return reply;
      // Replays and revoked keys, which only the authority knows.
      edge.limits.giveBack(limit, source, now);
      return countedFailure(edge, 'ADMIN_FAILURES', key, now, () => reply);
    });
  });
}

function isUnauthenticated({ refusal }: Reply): boolean {
  return refusal === 'admin_auth_failed' || refusal === 'unknown_admin_key';
}

/** The request, or the reply to one that cannot be read. */
function judgedOrRefused(
  edge: Edge,
  exchange: Exchange,
  found: Found,
  body: Body,
  now: number,
): RouteRequest | Reply {
  try {
    return judged(edge, exchange, found, body, now);
  } catch (cause) {
    if (cause instanceof Refusal) return refusalReply(cause.refusal, cause.details);
    throw cause;
  }
}

/** The request as its handler sees it, with all proofs judged. */
function judged(
  edge: Edge,
  exchange: Exchange,
  { route, params }: Found,
  rawBody: Body,
  now: number,
): RouteRequest {
  if (rawBody === 'too_large') throw new Refusal('request_entity_too_large');
  const request = {
    method: route.method,
    path: exchange.path,
    query: exchange.query === '' ? NO_QUERY : parseQuery(exchange.query),
    body: NO_BODY,
    id: exchange.requestId,
    params,
    now,
    remoteAddr: exchange.remoteAddr,
    baseUrl: exchange.baseUrl,
    ifNoneMatch: exchange.ifNoneMatch,
    acceptsGzip: exchange.acceptsGzip,
    stream: exchange.stream,
    wantsErrorPage: exchange.wantsErrorPage,
    operator: null as OperatorClaim | null,
    node: null as NodeClaim | null,
  };
  if (exchange.operatorHeaders !== null) {
    judgeOperatorRequest(edge, exchange, route, request, rawBody);
  } else if (exchange.takesBody) {
    request.body = parseBody(rawBody, maxBodyValues(route));
    if (route.proof !== undefined)
      request.node = nodeClaim(edge, exchange, route, request, rawBody);
  }
  return request;
}

interface OperatorRequest extends RouteRequest {
  body: JsonObject;
  operator: OperatorClaim | null;
}

/**
 * An unproven request is passed on without its body, which nobody will read; if the headers alone show that it
 * fails, a large one is not even parsed.
 */
function judgeOperatorRequest(
  edge: Edge,
  exchange: Exchange,
  { path: scope, keepsAnswer }: Route,
  request: OperatorRequest,
  rawBody: Uint8Array,
): void {
  const { operatorHeaders: headers, remoteAddr, takesBody } = exchange;
  if (headers === null) return;
  const { operatorAuth } = edge.settings;
  const { keyId, nonce } = headers;
  const { signedAt, ...found } = judgeOperatorHeaders(headers, operatorAuth, request.now);
  const isLarge = takesBody && isLargeBody(rawBody);
  if (takesBody && (found.verdict === 'valid' || !isLarge)) request.body = parseBody(rawBody);
  const { verdict, version } =
    found.verdict === 'valid'
      ? judgeSignature(headers, request, operatorAuth)
      : { verdict: found.verdict, version: null };
  if (verdict !== 'valid') request.body = NO_BODY;
  else noteProof(edge, senderOf(exchange, headers), request.now, isLarge);
  request.operator = {
    keyId,
    signedAt,
    nonce,
    verdict,
    signatureVersion: version,
    scope,
    remoteAddr,
    sending: keepsAnswer ? sendingOf(request, headers.signature, exchange.isRepeat) : null,
  };
}

function noteProof({ unprovenBodies }: Edge, sender: Sender, now: number, isLarge: boolean): void {
  if (isLarge) unprovenBodies.giveBack(sender, now);
  unprovenBodies.proved(sender, now);
}

function nodeClaim(
  edge: Edge,
  { nodeProof, isRepeat }: Exchange,
  { proof, keepsAnswer }: Route,
  request: RouteRequest,
  rawBody: Uint8Array,
): NodeClaim | null {
  const key = proof?.keyOf(request) ?? null;
  if (key === null || (nodeProof === '' && proof?.form === 'header if sent')) return null;
  const repeat = keepsAnswer ? isRepeat : null;
  return judgeNode(key, nodeProof, request, repeat, rawBody, edge.settings.nodeAuth);
}
