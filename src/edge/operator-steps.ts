/**
 * Pipeline steps only for operators [core-2-3]: their proof, and the limit on failed proofs [core-4-1],
 * `ADMIN_FAILURES`. If that limit is on, failures count only toward it, and the limit of the route counts only
 * requests with a proven key. A valid proof passes even after its source has failed too often, so that strangers at
 * the same address cannot lock operators out.
 */
import { Refusal } from '../base/refusal.ts';
import { maxBodyValues } from '../protocol/route-description.ts';
import { judgeOperatorHeaders, judgeSignature, type OperatorHeaders } from './auth/operator.ts';
import { requestIdentityOf } from './auth/signed-request.ts';
import { parseBody } from './body.ts';
import { type Edge, withAnswer } from './edge.ts';
import { NO_BYTES, type Received, type StepResult } from './exchange.ts';
import { countedFailure, limited, limitKey, takeLimit } from './limited.ts';
import { queryOf } from './query.ts';
import { type Reply, refusalReply } from './reply.ts';
import { addressBlock } from './request-head.ts';
import { isLargeBody, type Sender } from './unproven-bodies.ts';

/** The largest body that is still checked after its source has failed too often: enough for everything but imports. */
const LARGEST_THROTTLED_BODY = 16 * 1024;

/** Waits for a key that may have just been published but has not arrived here yet. */
export function awaitOperatorKey(edge: Edge, received: Received): StepResult {
  if (!isBeingPublished(edge, headersOf(received).keyId)) return null;
  return Promise.resolve(edge.call('awaitPublications', null)).then((answer) =>
    !answer.ok && answer.refusal === 'authority_unavailable' ? refusalReply(answer.refusal) : null,
  );
}

/** Whether the key is unknown here but may have been published and not have arrived yet. */
function isBeingPublished({ settings, documents, instanceStatus }: Edge, keyId: string): boolean {
  if (settings.operatorAuth.keys.has(keyId)) return false;
  if (instanceStatus !== null) return true;
  const isOutdated = documents.get('operator_keys') === undefined;
  return isOutdated && documents.latest('operator_keys') !== undefined;
}

export function limitUnproven(edge: Edge, received: Received): StepResult {
  return countsFailures(edge) ? null : takeLimit(edge, received);
}

/** Refuses a large body unread if its source has failed too often, because reading it is the expensive part. */
export function throttleFailed(edge: Edge, received: Received): StepResult {
  const { body, request } = received;
  if (!countsFailures(edge)) return null;
  if (body === 'too_large' || body.byteLength <= LARGEST_THROTTLED_BODY) return null;
  const seconds = edge.limits.wait('ADMIN_FAILURES', failureKey(edge, received), request.now);
  return withAnswer(seconds, (wait) => (wait > 0 ? limited(edge, 'ADMIN_FAILURES', wait) : null));
}

/** Limits how many large bodies are read in the name of a key that may turn out not to have signed them. */
export function judgeHeaders(edge: Edge, received: Received): StepResult {
  const { request } = received;
  const { operatorAuth } = edge.settings;
  received.headers = judgeOperatorHeaders(headersOf(received), operatorAuth, request.now);
  if (received.headers.verdict !== 'valid' || !hasLargeBody(received)) return null;
  const seconds = edge.unprovenBodies.take(senderOf(received), request.now);
  return seconds > 0 ? limited(edge, 'ADMIN_FAILURES', seconds) : null;
}

/** Does not even parse a large body if the headers alone show that its proof fails. */
export function parseOperatorRequest(edge: Edge, received: Received): StepResult {
  const { exchange, route, body, headers, request } = received;
  try {
    if (body === 'too_large') throw new Refusal('request_entity_too_large');
    if (exchange.query !== '') request.query = queryOf(exchange.query, route);
    const isRead = headers?.verdict === 'valid' || !hasLargeBody(received);
    if (exchange.takesBody && isRead) request.body = parseBody(body, maxBodyValues(route));
    return null;
  } catch (cause) {
    if (!(cause instanceof Refusal) || !countsFailures(edge)) throw cause;
    return countFailure(edge, received, refusalReply(cause.refusal, cause.details));
  }
}

/**
 * Only checks which key has signed. The authority decides what that key may do, because it knows what was revoked. An
 * unproven request is passed on without its body, which nobody will read.
 */
export function proveOperator(edge: Edge, received: Received): StepResult {
  const { exchange, route, request } = received;
  const headers = headersOf(received);
  if (received.headers === null) throw new Error('The headers of an operator were not judged');
  const { verdict, signedAt } = received.headers;
  const judged =
    verdict === 'valid'
      ? judgeSignature(headers, request, edge.settings.operatorAuth)
      : { verdict, version: null };
  if (judged.verdict === 'valid') {
    const sender = senderOf(received);
    if (hasLargeBody(received)) edge.unprovenBodies.giveBack(sender, request.now);
    edge.unprovenBodies.proved(sender, request.now);
  } else {
    request.body = {};
  }
  request.operator = {
    keyId: headers.keyId,
    signedAt,
    nonce: headers.nonce,
    verdict: judged.verdict,
    signatureVersion: judged.version,
    scope: route.path,
    remoteAddr: exchange.remoteAddr,
    sending: route.keepsAnswer
      ? requestIdentityOf(request, headers.signature, exchange.isRepeat)
      : null,
  };
  received.body = NO_BYTES;
  return null;
}

/** Counts failures before they are answered, and requests with a proven key in the limit of the route. */
export function countProof(edge: Edge, received: Received): StepResult {
  if (!countsFailures(edge)) return null;
  return isProven(received) ? takeLimit(edge, received) : countFailure(edge, received, null);
}

export function handleOperator(edge: Edge, received: Received): Reply | Promise<Reply> {
  const { route, request } = received;
  const reply = route.handle(request, edge);
  if (!countsFailures(edge) || !isProven(received)) return reply;
  return withAnswer(reply, (settled) => {
    if (!isUnauthenticated(settled)) return settled;
    // Replays and revoked keys, which only the authority knows.
    if (route.limit !== 'none') {
      edge.limits.giveBack(route.limit, limitKey(received), request.now);
    }
    return countFailure(edge, received, settled);
  });
}

function headersOf({ exchange: { operatorHeaders } }: Received): OperatorHeaders {
  if (operatorHeaders === null) throw new Error('A step of operators was reached without headers');
  return operatorHeaders;
}

function countsFailures({ limits }: Edge): boolean {
  return limits.isOn('ADMIN_FAILURES');
}

/** Counts a failure and then gives `next`, or 429 once there were too many. */
function countFailure<Next extends Reply | null>(
  edge: Edge,
  received: Received,
  next: Next,
): Reply | Next | Promise<Reply | Next> {
  const key = failureKey(edge, received);
  return countedFailure(edge, 'ADMIN_FAILURES', key, received.request.now, () => next);
}

/** Unknown key ids share one entry; otherwise each made-up id would have a fresh allowance. */
function failureKey({ settings }: Edge, received: Received): string {
  const { source, keyId } = senderOf(received);
  return `${source} ${settings.operatorAuth.keys.has(keyId) ? keyId : ''}`;
}

/** The sender in whose name a body is read. */
function senderOf(received: Received): Sender {
  const source = addressBlock(received.exchange.remoteAddr);
  return { source, keyId: headersOf(received).keyId };
}

/** Whether the body is one of those that are read only a limited number of times before a key is proven. */
function hasLargeBody({ exchange, body }: Received): boolean {
  return exchange.takesBody && body !== 'too_large' && isLargeBody(body);
}

function isProven({ request }: Received): boolean {
  return request.operator?.verdict === 'valid';
}

function isUnauthenticated({ refusal }: Reply): boolean {
  return refusal === 'admin_auth_failed' || refusal === 'unknown_admin_key';
}
