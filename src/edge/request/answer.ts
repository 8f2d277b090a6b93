/**
 * A request from its complete body to its reply, in the order of the contract: refused early, limit, read, judge, handle,
 * reply. Every proof is judged here, so that no handler can forget it.
 *
 * What need not wait gets its reply without a promise, which is then sent in the same turn: a third faster for
 * heartbeats and verifications.
 */

import { problemText } from '../../base/error-message.ts';
import type { NodeClaim, OperatorClaim } from '../../protocol/contract/claims.ts';
import { Refusal, type RefusalName } from '../../protocol/refusals.ts';
import { maxBodyValues } from '../../protocol/route-description.ts';
import { judgeNode } from '../auth/node.ts';
import {
  type JudgedHeaders,
  judgeOperatorHeaders,
  judgeSignature,
  type OperatorHeaders,
} from '../auth/operator.ts';
import { requestIdentityOf } from '../auth/signed-request.ts';
import { type Edge, withAnswer } from '../edge.ts';
import { NOT_BEGUN } from '../forward/target.ts';
import { isLargeBody, type Sender } from '../limits/rate-limit.ts';
import {
  errorEnvelope,
  isPiecewise,
  notFoundReply,
  type PiecewiseBody,
  type Reply,
  refusalReply,
} from '../reply.ts';
import { corsLines, preflightReply } from './cors.ts';
import { limited, takeLimit } from './limited.ts';
import { parseBody, queryOf, type ReceivedBody } from './parse.ts';
import { addressBlock } from './request-head.ts';
import type { Request, Route } from './route.ts';

/** Null if the request continues. */
type Admission = Reply | null | Promise<Reply | null>;

/** Continues with the complete body, or with the reason why it is incomplete. Never throws. */
export function answer(edge: Edge, request: Request, body: ReceivedBody): Reply | Promise<Reply> {
  try {
    const reply = replyTo(edge, request, body);
    if (!(reply instanceof Promise)) return finished(edge, request, reply);
    return reply.then(
      (late) => finished(edge, request, late),
      (cause) => refuse(edge, request, cause),
    );
  } catch (cause) {
    return refuse(edge, request, cause);
  }
}

function replyTo(edge: Edge, request: Request, body: ReceivedBody): Reply | Promise<Reply> {
  const { route } = request;
  if (request.isRefused) return refusalReply('shutting_down');
  if (request.cors?.isPreflight === true) return preflightReply();
  if (body === 'ambiguous') return refusalReply('ambiguous_body');
  if (route === null) return unmatchedReply(edge, request);
  if (body === 'dropped') return refusalReply('request_timeout');
  const refused = admit(edge, request, route);
  if (refused instanceof Promise) return whenAdmitted(edge, request, route, body, refused);
  return refused ?? handled(edge, request, route, body);
}

function unmatchedReply(edge: Edge, request: Request): Reply | Promise<Reply> {
  const { unmatched, wantsErrorPage, rawPath } = request;
  const page = wantsErrorPage ? edge.notFoundPage(rawPath) : null;
  if (page !== null) return notFoundReply(page, request);
  if (unmatched === null || unmatched === 'undecodable') return refusalReply('bad_request');
  if (unmatched === 'not_found') return refusalReply('not_found');
  return refusalReply('method_not_allowed', {}, 'Allow', unmatched.allow);
}

/** Counts the request in the limit of its route, once the key of its operator is known. */
function admit(edge: Edge, request: Request, route: Route): Admission {
  const { operatorHeaders } = request;
  return operatorHeaders !== null && isBeingPublished(edge, operatorHeaders.keyId)
    ? admitWithNewKey(edge, request, route)
    : count(edge, request, route);
}

/** Whether the key is unknown here but may have been published and not have arrived yet. */
function isBeingPublished({ settings, documents }: Edge, keyId: string): boolean {
  if (settings.operatorAuth.keys.has(keyId)) return false;
  const isOutdated = documents.get('operator_keys') === undefined;
  return isOutdated && documents.latest('operator_keys') !== undefined;
}

async function admitWithNewKey(edge: Edge, request: Request, route: Route): Promise<Reply | null> {
  await edge.call('awaitPublications', null);
  return count(edge, request, route);
}

/** Reads the clock once per request. A request without a body is answered on arrival, so its start time is reused. */
function count(edge: Edge, request: Request, route: Route): Admission {
  const { runtime } = edge;
  request.now = request.takesBody ? runtime.now() : runtime.timeAt(request.started);
  return takeLimit(edge, request, route);
}

async function whenAdmitted(
  edge: Edge,
  request: Request,
  route: Route,
  body: Uint8Array | 'too_large',
  admission: Promise<Reply | null>,
): Promise<Reply> {
  // The bytes of an uncopied body become invalid with the first wait.
  const copy = body === 'too_large' ? body : Buffer.from(body);
  const refused = await admission;
  if (refused !== null) return refused;
  await sliceFor(request, edge);
  return handled(edge, request, route, copy);
}

/** Many requests may have waited for the same message of another thread. What follows is cheap only for nodes. */
function sliceFor({ line }: Request, { queue }: Edge): Promise<void> | null {
  return line === null || line === 'node' ? null : queue.turn();
}

/** Reads and judges the request, and has its route handle it. */
function handled(
  edge: Edge,
  request: Request,
  route: Route,
  body: Uint8Array | 'too_large',
): Reply | Promise<Reply> {
  const { operatorHeaders, takesBody, rawQuery, now } = request;
  if (body === 'too_large') throw new Refusal('request_entity_too_large');
  if (operatorHeaders === null) {
    if (rawQuery !== '') request.query = queryOf(rawQuery, route);
    if (takesBody) request.body = parseBody(body, maxBodyValues(route));
    request.node = nodeClaim(edge, request, route, body);
    return route.handle(request, edge);
  }
  const judged = judgeOperatorHeaders(operatorHeaders, edge.settings.operatorAuth, now);
  const isPossible = judged.verdict === 'valid';
  const isLarge = takesBody && isLargeBody(body);
  if (isLarge && isPossible) {
    const seconds = edge.unprovenBodies.take(senderOf(request, operatorHeaders), now);
    if (seconds > 0) return limited(edge, 'UNPROVEN_BODIES', seconds);
  }
  if (rawQuery !== '') request.query = queryOf(rawQuery, route);
  // A large body is not even parsed if the headers alone show that its proof fails.
  if (takesBody && (isPossible || !isLarge)) request.body = parseBody(body, maxBodyValues(route));
  request.operator = operatorClaim(edge, request, route, operatorHeaders, judged, isLarge);
  return route.handle(request, edge);
}

/**
 * Only checks which key has signed, or has begun the session. The authority decides what that key may do, because it
 * knows what was revoked.
 */
function nodeClaim(edge: Edge, request: Request, route: Route, body: Uint8Array): NodeClaim | null {
  const { nodeProof, session } = request;
  if (route.proof === undefined || !request.takesBody) return null;
  const key = route.proof.keyOf(request);
  if (key === null || (nodeProof === '' && route.proof.form === 'header if sent')) return null;
  const { nodeAuth } = edge.settings;
  if (session !== '') return edge.sessions.judge(key, session, request, body, nodeAuth.toleranceMs);
  const isRepeat = route.keepsAnswer ? request.isRepeat : null;
  return judgeNode(key, nodeProof, request, isRepeat, body, nodeAuth);
}

/**
 * Only checks which key has signed [core-2-3]. The authority decides what that key may do, because it knows what was
 * revoked. An unproven request is passed on without its body, which nobody will read.
 */
function operatorClaim(
  edge: Edge,
  request: Request,
  route: Route,
  headers: OperatorHeaders,
  { verdict, signedAt }: JudgedHeaders,
  isLarge: boolean,
): OperatorClaim {
  const { keyId, nonce, signature } = headers;
  const { now, remoteAddr, isRepeat } = request;
  const judged =
    verdict === 'valid'
      ? judgeSignature(headers, request, edge.settings.operatorAuth)
      : { verdict, version: null };
  if (judged.verdict === 'valid') {
    const sender = senderOf(request, headers);
    if (isLarge) edge.unprovenBodies.giveBack(sender, now);
    edge.unprovenBodies.proved(sender, now);
  } else {
    request.body = {};
  }
  return {
    keyId,
    signedAt,
    nonce,
    verdict: judged.verdict,
    signatureVersion: judged.version,
    scope: route.path,
    remoteAddr,
    identity: route.keepsAnswer ? requestIdentityOf(request, signature, isRepeat) : null,
  };
}

/** The sender in whose name a body is read. */
function senderOf({ remoteAddr }: Request, { keyId }: OperatorHeaders): Sender {
  return { source: addressBlock(remoteAddr), keyId };
}

/** Completes and records a reply that was made without the route. */
export function completed(
  edge: Edge,
  request: Request,
  reply: Reply | Promise<Reply>,
): Reply | Promise<Reply> {
  return withAnswer(reply, (late) => finished(edge, request, late));
}

/** Completes a reply and records it in metrics and log; nothing after this can change the answer. */
function finished(edge: Edge, request: Request, reply: Reply): Reply {
  const { cors, isForwarded } = request;
  const status = reply.status === 200 ? successStatus(edge, request) : reply.status;
  const body = finishedBody(edge, request, reply, status);
  if (body === reply.body && status === reply.status && cors === null) return reply;
  const { contentType, headerLines, refusal, contentSecurityPolicy } = reply;
  const isNotBegun = isForwarded && refusal !== null && NOT_BEGUN_REFUSALS.has(refusal);
  const lines = isNotBegun ? `${headerLines}\r\n${NOT_BEGUN}: 1` : headerLines;
  return {
    status,
    contentType,
    body,
    headerLines: cors === null ? lines : `${lines}\r\n${corsLines(cors)}`,
    refusal,
    contentSecurityPolicy,
  };
}

/** Refusals that are given before any work begins: another instance may answer the request. */
const NOT_BEGUN_REFUSALS: ReadonlySet<RefusalName> = new Set([
  'authority_unavailable',
  'shutting_down',
]);

function finishedBody(
  edge: Edge,
  request: Request,
  { body, refusal }: Reply,
  status: number,
): Reply['body'] {
  if (isPiecewise(body)) return followed(body, edge, request, status);
  noteOutcome(edge, request, status);
  return refusal === null ? body : errorEnvelope(refusal, String(body), request.id);
}

/** Counts and logs the outcome of a request. */
export function noteOutcome(edge: Edge, request: Request, status: number): void {
  const { sentMethod, route } = request;
  const ended = edge.runtime.elapsed();
  const seconds = (ended - request.started) / 1000;
  edge.metrics.request(sentMethod, route?.path ?? 'unmatched', status, seconds);
  logOutcome(edge, request, status, ended);
}

/** Logs the answer of another instance, which has counted it. */
export function notePassed(edge: Edge, request: Request, id: string, status: number): void {
  edge.metrics.passed();
  logOutcome(edge, { ...request, id }, status, edge.runtime.elapsed());
}

function logOutcome(
  { logger, runtime }: Edge,
  { started, sentMethod, rawPath, id, remoteAddr }: Request,
  status: number,
  ended: number,
): void {
  logger.request(runtime.timeAt(ended), {
    request_id: id,
    method: sentMethod,
    path: rawPath,
    status,
    duration_ms: Math.round((ended - started) * 1000) / 1000,
    remote_addr: remoteAddr,
  });
}

/** The body, with its outcome recorded: sent completely, client disconnected, or not completed. */
function followed(
  body: PiecewiseBody,
  edge: Edge,
  request: Request,
  status: number,
): PiecewiseBody {
  return {
    async next() {
      try {
        const piece = await body.next();
        if (piece === null) noteOutcome(edge, request, status);
        return piece;
      } catch (cause) {
        logProblem(edge, request, cause);
        noteOutcome(edge, request, status);
        throw cause;
      }
    },
    abandon() {
      body.abandon();
      noteOutcome(edge, request, status);
    },
  };
}

function successStatus({ settings }: Edge, { route }: Request): number {
  if (route?.created === undefined) return 200;
  return route.created === 'always' ? 201 : settings.createdStatus;
}

/** A refusal becomes its reply; anything else is a bug, logged in full and answered with a plain 500. */
export function refuse(edge: Edge, request: Request, cause: unknown): Reply {
  if (cause instanceof Refusal) {
    return finished(edge, request, refusalReply(cause.refusal, cause.details));
  }
  logProblem(edge, request, cause);
  return finished(edge, request, refusalReply('internal_server_error'));
}

function logProblem({ logger }: Edge, { id }: Request, cause: unknown): void {
  logger.write('ERROR', 'http', `request_id=${id} ${problemText(cause)}`);
}

/**
 * Refuses a request that has waited too long. Clients that are refused together are asked to return at different
 * times, within twice the longest wait.
 */
export function shed(edge: Edge, request: Request): Reply {
  edge.metrics.shed();
  const longest = Math.max(2, (2 * edge.settings.longestWaitMs) / 1000);
  const share = edge.runtime.randomBytes(4).readUInt32LE() / 2 ** 32;
  const seconds = 1 + Math.floor(share * longest);
  return finished(edge, request, refusalReply('overloaded', {}, 'Retry-After', String(seconds)));
}
