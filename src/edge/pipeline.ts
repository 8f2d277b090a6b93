/**
 * A request from its complete body to its reply, in the order of the contract:
 *
 * 1. head: `openExchange` in `exchange.ts` reads it before the body arrives
 * 2. route: `replyTo`
 * 3. limit, 4. body, 5. parse, 6. authenticate, 7. handle: the lists of steps, which nothing else calls
 * 8. reply: `finished` in `finish.ts`
 *
 * Every proof is judged here, so that no handler can forget it.
 */

import { REFUSALS, Refusal } from '../base/refusal.ts';
import { maxBodyValues } from '../protocol/route-description.ts';
import { judgeNode } from './auth/node.ts';
import { parseBody } from './body.ts';
import { preflightReply } from './cors.ts';
import type { Edge } from './edge.ts';
import { type Exchange, NO_BYTES, type Received, received, type StepResult } from './exchange.ts';
import { type FinishedReply, finished, replyToError } from './finish.ts';
import { takeLimit } from './limited.ts';
import {
  awaitOperatorKey,
  countProof,
  handleOperator,
  judgeHeaders,
  limitUnproven,
  parseOperatorRequest,
  proveOperator,
  throttleFailed,
} from './operator-steps.ts';
import { parseQuery } from './query.ts';
import { errorPageReply, type Reply, refusalReply } from './reply.ts';
import type { Route } from './route.ts';
import type { Match } from './router.ts';
import type { ReceivedBody } from './uploads.ts';

/** Returns null to go on with the next step, or the reply that ends the request. Throws a `Refusal` to refuse it. */
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
  limitUnproven, // 3. limit
  throttleFailed, // 4. body
  judgeHeaders,
  parseOperatorRequest, // 5. parse
  proveOperator, // 6. authenticate
  countProof,
  handleOperator, // 7. handle
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
  const steps = exchange.operatorHeaders === null ? STEPS : OPERATOR_STEPS;
  return take(steps, 0, edge, received(exchange, match, body));
}

/** Takes the steps from `first` on, without a wait where none is needed. */
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
      return reply.then((settled) => settled ?? take(steps, at + 1, edge, received));
    }
    if (reply !== null) return reply;
  }
  throw new Error('The last step has no reply');
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

/** The one clock reading of the request. One without a body is answered as it arrives. */
function readClock({ runtime }: Edge, { exchange, request }: Received): null {
  request.now = exchange.takesBody ? runtime.now() : runtime.timeAt(exchange.started);
  return null;
}

function refuseTooLarge(_edge: Edge, { body }: Received): null {
  if (body === 'too_large') throw new Refusal('request_entity_too_large');
  return null;
}

function parse(_edge: Edge, { exchange, route, body, request }: Received): null {
  if (exchange.query !== '') request.query = parseQuery(exchange.query);
  if (exchange.takesBody && body !== 'too_large') {
    request.body = parseBody(body, maxBodyValues(route));
  }
  return null;
}

/** Which key has signed is judged here, and what it may do by the authority, which knows what was revoked. */
function proveNode(edge: Edge, received: Received): null {
  const { exchange, route, body, request } = received;
  const { nodeProof, isRepeat, takesBody } = exchange;
  received.body = NO_BYTES;
  if (route.proof === undefined || !takesBody || body === 'too_large') return null;
  const { keyOf, form } = route.proof;
  const key = keyOf(request);
  if (key === null || (nodeProof === '' && form === 'header if sent')) return null;
  const repeat = route.keepsAnswer ? isRepeat : null;
  request.node = judgeNode(key, nodeProof, request, repeat, body, edge.settings.nodeAuth);
  return null;
}

function handle(edge: Edge, { route, request }: Received): Reply | Promise<Reply> {
  return route.handle(request, edge);
}
