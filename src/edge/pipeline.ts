/**
 * A request from its complete body to its reply, in the order of the contract:
 *
 * 1. head: `openExchange` in `exchange.ts` reads it before the body arrives
 * 2. route: `replyTo`
 * 3. limit, 4. body, 5. parse, 6. authenticate, 7. handle: the lists of steps, which nothing else calls
 * 8. reply: `finished`
 *
 * Every proof is judged here, so that no handler can forget it.
 */

import { problemText } from '../base/log/problem.ts';
import { Refusal } from '../protocol/refusals.ts';
import { maxBodyValues } from '../protocol/route-description.ts';
import { judgeNode } from './auth/node.ts';
import { parseBody } from './body.ts';
import { corsLines, preflightReply } from './cors.ts';
import type { Edge } from './edge.ts';
import {
  type Exchange,
  NO_BYTES,
  type Received,
  received,
  routeOf,
  type StepResult,
} from './exchange.ts';
import { takeLimit } from './limited.ts';
import {
  awaitOperatorKey,
  judgeHeaders,
  parseOperatorRequest,
  proveOperator,
} from './operator-steps.ts';
import { queryOf } from './query.ts';
import {
  errorEnvelope,
  isPiecewise,
  notFoundReply,
  type PiecewiseBody,
  type Reply,
  refusalReply,
} from './reply.ts';
import type { Client, Route } from './route.ts';
import type { Match } from './router.ts';
import type { ReceivedBody } from './uploads.ts';

export interface FinishedReply extends Reply {
  readonly requestId: string;
}

/** Returns null to continue with the next step, or the reply that ends the request. Throws a `Refusal` to refuse it. */
type Step = (edge: Edge, received: Received) => StepResult;

/** Requests of nodes and of the public. */
const STEPS: readonly Step[] = [
  readClock,
  takeLimit, // 3. limit
  refuseTooLarge, // 4. body
  parse, // 5. parse
  proveNode, // 6. authenticate
  handle, // 7. handle
];

/** Requests with the headers of an operator [core-2-3]. */
const OPERATOR_STEPS: readonly Step[] = [
  awaitOperatorKey,
  readClock,
  takeLimit, // 3. limit
  judgeHeaders, // 4. body
  parseOperatorRequest, // 5. parse
  proveOperator, // 6. authenticate
  handle, // 7. handle
];

/** Continues with the complete body, or with the reason why it is incomplete. Never throws. */
export function finishExchange(
  edge: Edge,
  exchange: Exchange,
  body: ReceivedBody,
  client: Client,
): FinishedReply | Promise<FinishedReply> {
  try {
    const reply = replyTo(edge, exchange, body, client);
    if (!(reply instanceof Promise)) return finished(edge, exchange, reply);
    return reply.then(
      (settled) => finished(edge, exchange, settled),
      (cause) => finished(edge, exchange, replyToError(cause, edge, exchange.requestId)),
    );
  } catch (cause) {
    return finished(edge, exchange, replyToError(cause, edge, exchange.requestId));
  }
}

function replyTo(
  edge: Edge,
  exchange: Exchange,
  body: ReceivedBody,
  client: Client,
): Reply | Promise<Reply> {
  const { match } = exchange;
  if (exchange.isRefused) return refusalReply('shutting_down');
  if (exchange.cors?.isPreflight === true) return preflightReply();
  if (body === 'ambiguous') return refusalReply('ambiguous_body');
  if (typeof match === 'string' || 'allow' in match) return unmatched(edge, exchange, match);
  if (body === 'dropped') return refusalReply('request_timeout');
  const steps = exchange.operatorHeaders === null ? STEPS : OPERATOR_STEPS;
  return take(steps, 0, edge, received(exchange, match, body, client));
}

/** Runs the steps from `first` on, synchronously until a step returns a promise. */
function take(
  steps: readonly Step[],
  first: number,
  edge: Edge,
  received: Received,
): Reply | Promise<Reply> {
  for (let at = first; at < steps.length; at += 1) {
    const reply = steps[at]?.(edge, received) ?? null;
    if (reply instanceof Promise) {
      if (received.body !== 'too_large') received.body = Buffer.from(received.body);
      return reply.then((settled) => settled ?? takeInSlice(steps, at + 1, edge, received));
    }
    if (reply !== null) return reply;
  }
  throw new Error('The last step has no reply');
}

/** Many requests may have waited for the same message of another thread. What follows is cheap only for nodes. */
function takeInSlice(
  steps: readonly Step[],
  first: number,
  edge: Edge,
  received: Received,
): Reply | Promise<Reply> {
  const next = () => take(steps, first, edge, received);
  const { line } = received.exchange;
  return line === null || line === 'node' ? next() : edge.queue.turn().then(next);
}

function unmatched(
  edge: Edge,
  exchange: Exchange,
  match: Exclude<Match | 'undecodable', { readonly route: Route }>,
): Reply | Promise<Reply> {
  const page = exchange.wantsErrorPage ? edge.notFoundPage(exchange.rawPath) : null;
  if (page !== null) return notFoundReply(page, exchange);
  if (match === 'undecodable') return refusalReply('bad_request');
  if (match === 'not_found') return refusalReply('not_found');
  return refusalReply('method_not_allowed', {}, 'Allow', match.allow);
}

/** Reads the clock once per request. A request without a body is answered on arrival, so its start time is reused. */
function readClock({ runtime }: Edge, { exchange, request }: Received): null {
  request.now = exchange.takesBody ? runtime.now() : runtime.timeAt(exchange.started);
  return null;
}

function refuseTooLarge(_edge: Edge, { body }: Received): null {
  if (body === 'too_large') throw new Refusal('request_entity_too_large');
  return null;
}

function parse(_edge: Edge, { exchange, route, body, request }: Received): null {
  if (exchange.query !== '') request.query = queryOf(exchange.query, route);
  if (exchange.takesBody && body !== 'too_large') {
    request.body = parseBody(body, maxBodyValues(route));
  }
  return null;
}

/**
 * Only checks which key has signed, or has begun the session. The authority decides what that key may do, because it
 * knows what was revoked.
 */
function proveNode(edge: Edge, received: Received): null {
  const { exchange, route, body, request } = received;
  const { nodeProof, session, isRepeat, takesBody } = exchange;
  const { nodeAuth } = edge.settings;
  received.body = NO_BYTES;
  if (route.proof === undefined || !takesBody || body === 'too_large') return null;
  const { keyOf, form } = route.proof;
  const key = keyOf(request);
  if (key === null || (nodeProof === '' && form === 'header if sent')) return null;
  const repeat = route.keepsAnswer ? isRepeat : null;
  request.node =
    session === ''
      ? judgeNode(key, nodeProof, request, repeat, body, nodeAuth)
      : edge.sessions.judge(key, session, request, body, nodeAuth.toleranceMs);
  return null;
}

function handle(edge: Edge, { route, request }: Received): Reply | Promise<Reply> {
  return route.handle(request, edge);
}

/** Completes a reply and records it in metrics and log; nothing after this can change the answer. */
function finished(edge: Edge, exchange: Exchange, reply: Reply): FinishedReply {
  const { requestId } = exchange;
  const status = reply.status === 200 ? successStatus(edge, routeOf(exchange.match)) : reply.status;
  const { contentType, refusal, contentSecurityPolicy } = reply;
  const headerLines =
    exchange.cors === null
      ? reply.headerLines
      : `${reply.headerLines}\r\n${corsLines(exchange.cors)}`;
  const body =
    refusal === null ? reply.body : errorEnvelope(refusal, String(reply.body), requestId);
  const isWhole = !isPiecewise(body);
  if (isWhole) noteOutcome(edge, exchange, status);
  return {
    status,
    contentType,
    body: isWhole
      ? body
      : followed(body, edge, requestId, () => noteOutcome(edge, exchange, status)),
    headerLines,
    refusal,
    contentSecurityPolicy,
    requestId,
  };
}

/** Counts and logs the outcome of a request. */
export function noteOutcome(
  edge: Edge,
  { started, method, rawPath, match, requestId, remoteAddr }: Exchange,
  status: number,
): void {
  const ended = edge.runtime.elapsed();
  const elapsed = ended - started;
  edge.metrics.request(method, routeOf(match)?.path ?? 'unmatched', status, elapsed / 1000);
  edge.logger.request(edge.runtime.timeAt(ended), {
    request_id: requestId,
    method,
    path: rawPath,
    status,
    duration_ms: Math.round(elapsed * 1000) / 1000,
    remote_addr: remoteAddr,
  });
}

/** The body, with its outcome recorded: sent completely, client disconnected, or not completed. */
function followed(
  body: PiecewiseBody,
  edge: Edge,
  requestId: string,
  noteEnd: () => void,
): PiecewiseBody {
  return {
    async next() {
      try {
        const piece = await body.next();
        if (piece === null) noteEnd();
        return piece;
      } catch (cause) {
        logProblem(edge, requestId, cause);
        noteEnd();
        throw cause;
      }
    },
    abandon() {
      body.abandon();
      noteEnd();
    },
  };
}

function successStatus({ settings }: Edge, route: Route | null): number {
  if (route?.created === undefined) return 200;
  return route.created === 'always' ? 201 : settings.createdStatus;
}

/** A refusal becomes its reply; anything else is a bug, logged in full and answered with a plain 500. */
function replyToError(cause: unknown, edge: Edge, requestId: string): Reply {
  if (cause instanceof Refusal) return refusalReply(cause.refusal, cause.details);
  logProblem(edge, requestId, cause);
  return refusalReply('internal_server_error');
}

function logProblem({ logger }: Edge, requestId: string, cause: unknown): void {
  logger.write('ERROR', 'http', `request_id=${requestId} ${problemText(cause)}`);
}

/** Refuses a request outside the handlers of the routes. */
export function refusedExchange(edge: Edge, exchange: Exchange, cause: unknown): FinishedReply {
  return finished(edge, exchange, replyToError(cause, edge, exchange.requestId));
}

/**
 * Refuses a request that has waited too long. Clients that are refused together are asked to return at different
 * times, within twice the longest wait.
 */
export function shedExchange(edge: Edge, exchange: Exchange): FinishedReply {
  edge.metrics.shed();
  const longest = Math.max(2, (2 * edge.settings.longestWaitMs) / 1000);
  const share = edge.runtime.randomBytes(4).readUInt32LE() / 2 ** 32;
  const seconds = 1 + Math.floor(share * longest);
  return finished(edge, exchange, refusalReply('overloaded', {}, 'Retry-After', String(seconds)));
}
