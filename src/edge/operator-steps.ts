/**
 * Pipeline steps only for operators [core-2-3]: their proof, and the limit on large bodies that may turn out not to be
 * theirs.
 */
import { Refusal } from '../protocol/refusals.ts';
import { maxBodyValues } from '../protocol/route-description.ts';
import { judgeOperatorHeaders, judgeSignature, type OperatorHeaders } from './auth/operator.ts';
import { requestIdentityOf } from './auth/signed-request.ts';
import { parseBody } from './body.ts';
import type { Edge } from './edge.ts';
import { NO_BYTES, type Received, type StepResult } from './exchange.ts';
import { limited } from './limited.ts';
import { queryOf } from './query.ts';
import { refusalReply } from './reply.ts';
import { addressBlock } from './request-head.ts';
import { isLargeBody, type Sender } from './unproven-bodies.ts';

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

/** Limits how many large bodies are read in the name of a key that may turn out not to have signed them. */
export function judgeHeaders(edge: Edge, received: Received): StepResult {
  const { request } = received;
  const { operatorAuth } = edge.settings;
  received.headers = judgeOperatorHeaders(headersOf(received), operatorAuth, request.now);
  if (received.headers.verdict !== 'valid' || !hasLargeBody(received)) return null;
  const seconds = edge.unprovenBodies.take(senderOf(received), request.now);
  return seconds > 0 ? limited(edge, 'UNPROVEN_BODIES', seconds) : null;
}

/** Does not even parse a large body if the headers alone show that its proof fails. */
export function parseOperatorRequest(_: Edge, received: Received): StepResult {
  const { exchange, route, body, headers, request } = received;
  if (body === 'too_large') throw new Refusal('request_entity_too_large');
  if (exchange.query !== '') request.query = queryOf(exchange.query, route);
  const isRead = headers?.verdict === 'valid' || !hasLargeBody(received);
  if (exchange.takesBody && isRead) request.body = parseBody(body, maxBodyValues(route));
  return null;
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

function headersOf({ exchange: { operatorHeaders } }: Received): OperatorHeaders {
  if (operatorHeaders === null) throw new Error('A step of operators was reached without headers');
  return operatorHeaders;
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
