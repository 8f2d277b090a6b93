/**
 * A request from its complete body to its reply, in the order of [core-2-3]: one list of steps, read from top to
 * bottom. The head was read when it arrived (`exchange.ts`); what follows the reply is in `finish.ts`.
 *
 * Every proof is judged here, so that no handler can forget it.
 */

import { REFUSALS, Refusal } from '../base/refusal.ts';
import { maxBodyValues } from '../protocol/route-description.ts';
import { judgeNode } from './auth/node.ts';
import { type JudgedHeaders, judgeOperatorHeaders, judgeSignature } from './auth/operator.ts';
import { requestIdentityOf } from './auth/signed-request.ts';
import { parseBody } from './body.ts';
import { preflightReply } from './cors.ts';
import { type Edge, withAnswer } from './edge.ts';
import { type Exchange, type Received, received } from './exchange.ts';
import { type FinishedReply, finished, replyToError } from './finish.ts';
import { limited } from './limited.ts';
import { isBeingPublished } from './operator-keys.ts';
import {
  countFailure,
  hasLargeBody,
  isThrottled,
  secondsUntilJudged,
  senderOf,
} from './operator-throttle.ts';
import { parseQuery } from './query.ts';
import { errorPageReply, type Reply, refusalReply } from './reply.ts';
import { addressBlock } from './request-head.ts';
import type { NodeProofRule, Route } from './route.ts';
import type { Match } from './router.ts';
import type { ReceivedBody } from './uploads.ts';

/** Returns null to go on with the next step, or the reply that ends the request. */
type Step = (edge: Edge, received: Received) => Reply | null | Promise<Reply | null>;

const NO_BYTES = new Uint8Array(0);

const STEPS: readonly Step[] = [
  awaitOperatorKey,
  applyLimit,
  throttleOperator,
  boundUnprovenBodies,
  parse,
  authenticate,
  countFailedProof,
  applyOperatorLimit,
];

/** Continues with the complete body, or with the reason why it is incomplete. Never throws. */
export function finishExchange(
  edge: Edge,
  exchange: Exchange,
  body: ReceivedBody,
): FinishedReply | Promise<FinishedReply> {
  try {
    const reply = replyTo(edge, exchange, body);
    if (!(reply instanceof Promise)) return finished(edge, exchange, reply);
    return reply.then(
      (settled) => finished(edge, exchange, settled),
      (cause) => finished(edge, exchange, replyToError(cause, edge, exchange.requestId)),
    );
  } catch (cause) {
    return finished(edge, exchange, replyToError(cause, edge, exchange.requestId));
  }
}

function replyTo(edge: Edge, exchange: Exchange, body: ReceivedBody): Reply | Promise<Reply> {
  const { match } = exchange;
  if (exchange.isRefused) return refusalReply('shutting_down');
  if (exchange.cors?.isPreflight === true) return preflightReply();
  if (body === 'ambiguous') return refusalReply('ambiguous_body');
  if (typeof match === 'string' || 'allow' in match) return unmatched(edge, exchange, match);
  if (body === 'dropped') return refusalReply('request_timeout');
  return continued(edge, received(exchange, match, body), 0);
}

/** The steps from `first` on, without a wait where none is needed. */
function continued(edge: Edge, received: Received, first: number): Reply | Promise<Reply> {
  for (let at = first; at < STEPS.length; at += 1) {
    const reply = STEPS[at]?.(edge, received) ?? null;
    if (reply instanceof Promise) {
      if (received.body !== 'too_large') received.body = Buffer.from(received.body);
      return reply.then((settled) => settled ?? continued(edge, received, at + 1));
    }
    if (reply !== null) return reply;
  }
  return handle(edge, received);
}

function unmatched(
  edge: Edge,
  { wantsErrorPage, rawPath }: Exchange,
  match: Exclude<Match | 'undecodable', { readonly route: Route }>,
): Reply {
  const page = wantsErrorPage ? edge.notFoundPage(rawPath) : null;
  if (page !== null) return errorPageReply(REFUSALS.not_found.status, page);
  if (match === 'undecodable') return refusalReply('bad_request');
  if (match === 'not_found') return refusalReply('not_found');
  return refusalReply('method_not_allowed', {}, 'Allow', match.allow);
}

/** A key that was added a moment ago may be published already, and not have arrived here. */
function awaitOperatorKey(edge: Edge, { exchange }: Received): Promise<Reply | null> | null {
  const { operatorHeaders } = exchange;
  if (operatorHeaders === null || !isBeingPublished(edge, operatorHeaders.keyId)) return null;
  return Promise.resolve(edge.call('awaitPublications', null)).then((answer) =>
    !answer.ok && answer.refusal === 'authority_unavailable' ? refusalReply(answer.refusal) : null,
  );
}

/** Operators whose failed proofs are counted are counted themselves once they have proven who they are. */
function applyLimit(edge: Edge, received: Received): Reply | null | Promise<Reply | null> {
  const { exchange, request } = received;
  const { runtime } = edge;
  // A request without a body is answered as it arrives.
  request.now = exchange.takesBody ? runtime.now() : runtime.timeAt(exchange.started);
  return isThrottled(edge, exchange) ? null : takeLimit(edge, received);
}

function takeLimit(edge: Edge, { exchange, route, request }: Received) {
  const { limit } = route;
  if (limit === 'none' || !edge.limits.isOn(limit)) return null;
  return withAnswer(edge.limits.take(limit, limitKey(route, exchange), request.now), (seconds) =>
    seconds > 0 ? limited(edge, limit, seconds) : null,
  );
}

/** A limit is per source; verification endpoints have one bucket each [core-4-1]. */
function limitKey({ limit, path }: Route, { remoteAddr }: Exchange): string {
  const source = addressBlock(remoteAddr);
  return limit === 'VERIFY' ? `${path} ${source}` : source;
}

/** A large body of a source that has failed too often is refused unread, because reading it is the cost. */
function throttleOperator(edge: Edge, received: Received): Reply | null | Promise<Reply | null> {
  if (!isThrottled(edge, received.exchange)) return null;
  return withAnswer(secondsUntilJudged(edge, received), (seconds) =>
    seconds > 0 ? limited(edge, 'ADMIN_FAILURES', seconds) : null,
  );
}

/** Only a limited number of large bodies is read in the name of a key that may turn out not to have signed them. */
function boundUnprovenBodies(edge: Edge, received: Received): Reply | null {
  const { exchange, request } = received;
  const { operatorHeaders } = exchange;
  if (operatorHeaders === null) return null;
  received.headers = judgeOperatorHeaders(operatorHeaders, edge.settings.operatorAuth, request.now);
  if (received.headers.verdict !== 'valid' || !hasLargeBody(received)) return null;
  const sender = senderOf(exchange.remoteAddr, operatorHeaders.keyId);
  const seconds = edge.unprovenBodies.take(sender, request.now);
  return seconds > 0 ? limited(edge, 'ADMIN_FAILURES', seconds) : null;
}

/** Query and body. A large body whose headers alone show that its proof fails is not even parsed. */
function parse(edge: Edge, received: Received): Reply | null | Promise<Reply | null> {
  const { exchange, route, body, headers, request } = received;
  try {
    if (body === 'too_large') throw new Refusal('request_entity_too_large');
    if (exchange.query !== '') request.query = parseQuery(exchange.query);
    const isRead = headers === null || headers.verdict === 'valid' || !hasLargeBody(received);
    if (exchange.takesBody && isRead) request.body = parseBody(body, maxBodyValues(route));
    return null;
  } catch (cause) {
    if (!(cause instanceof Refusal)) throw cause;
    const refused = refusalReply(cause.refusal, cause.details);
    return isThrottled(edge, exchange) ? countFailure(edge, received, refused) : refused;
  }
}

/** Which key has signed is judged here, and what it may do by the authority, which knows what was revoked. */
function authenticate(edge: Edge, received: Received): null {
  if (received.headers !== null) judgeOperatorProof(edge, received, received.headers);
  else if (received.route.proof !== undefined) judgeNodeProof(edge, received, received.route.proof);
  received.body = NO_BYTES;
  return null;
}

/** An unproven request is passed on without its body, which nobody will read. */
function judgeOperatorProof(edge: Edge, received: Received, judged: JudgedHeaders): void {
  const { exchange, route, request } = received;
  const { operatorHeaders: headers, remoteAddr } = exchange;
  if (headers === null) return;
  const { keyId, nonce, signature } = headers;
  const { verdict, version } =
    judged.verdict === 'valid'
      ? judgeSignature(headers, request, edge.settings.operatorAuth)
      : { verdict: judged.verdict, version: null };
  if (verdict === 'valid') {
    const sender = senderOf(remoteAddr, keyId);
    if (hasLargeBody(received)) edge.unprovenBodies.giveBack(sender, request.now);
    edge.unprovenBodies.proved(sender, request.now);
  } else {
    request.body = {};
  }
  request.operator = {
    keyId,
    signedAt: judged.signedAt,
    nonce,
    verdict,
    signatureVersion: version,
    scope: route.path,
    remoteAddr,
    sending: route.keepsAnswer ? requestIdentityOf(request, signature, exchange.isRepeat) : null,
  };
}

function judgeNodeProof(edge: Edge, received: Received, { keyOf, form }: NodeProofRule): void {
  const { exchange, route, body, request } = received;
  const { nodeProof, isRepeat, takesBody } = exchange;
  if (!takesBody || body === 'too_large') return;
  const key = keyOf(request);
  if (key === null || (nodeProof === '' && form === 'header if sent')) return;
  const repeat = route.keepsAnswer ? isRepeat : null;
  request.node = judgeNode(key, nodeProof, request, repeat, body, edge.settings.nodeAuth);
}

function countFailedProof(edge: Edge, received: Received): Reply | null | Promise<Reply | null> {
  if (!isThrottled(edge, received.exchange) || isProven(edge, received)) return null;
  return countFailure(edge, received, null);
}

function applyOperatorLimit(edge: Edge, received: Received): Reply | null | Promise<Reply | null> {
  return isProven(edge, received) ? takeLimit(edge, received) : null;
}

function handle(edge: Edge, received: Received): Reply | Promise<Reply> {
  const { exchange, route, request } = received;
  const reply = route.handle(request, edge);
  if (!isProven(edge, received)) return reply;
  return withAnswer(reply, (settled) => {
    if (!isUnauthenticated(settled)) return settled;
    // Replays and revoked keys, which only the authority knows.
    if (route.limit !== 'none') {
      edge.limits.giveBack(route.limit, limitKey(route, exchange), request.now);
    }
    return countFailure(edge, received, settled);
  });
}

/** Whether a proof of an operator verifies that would be counted if it did not. */
function isProven(edge: Edge, { exchange, request }: Received): boolean {
  return request.operator?.verdict === 'valid' && isThrottled(edge, exchange);
}

function isUnauthenticated({ refusal }: Reply): boolean {
  return refusal === 'admin_auth_failed' || refusal === 'unknown_admin_key';
}
