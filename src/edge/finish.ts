/**
 * What follows a reply: envelope, CORS, metrics and the log line.
 */
import { problemText } from '../base/log/problem.ts';
import { Refusal, type RefusalName } from '../base/refusal.ts';
import { corsLines } from './cors.ts';
import type { Edge } from './edge.ts';
import { type Exchange, routeOf } from './exchange.ts';
import {
  errorEnvelope,
  isPiecewise,
  type PiecewiseBody,
  type Reply,
  refusalReply,
} from './reply.ts';
import type { Route } from './route.ts';

export interface FinishedReply extends Reply {
  readonly requestId: string;
}

/** Refuses a request outside the handlers of the routes. */
export function refusedExchange(
  edge: Edge,
  exchange: Exchange,
  refusal: RefusalName,
): FinishedReply {
  return finished(edge, exchange, refusalReply(refusal));
}

/**
 * Turns a request away that has waited too long. Those that are turned away together are asked to return at
 * different times, within twice the time that was too long.
 */
export function shedExchange(edge: Edge, exchange: Exchange): FinishedReply {
  edge.metrics.shed();
  const longest = Math.max(2, (2 * edge.settings.longestWaitMs) / 1000);
  const share = edge.runtime.randomBytes(4).readUInt32LE() / 2 ** 32;
  const seconds = 1 + Math.floor(share * longest);
  return finished(edge, exchange, refusalReply('overloaded', {}, 'Retry-After', String(seconds)));
}

/** Completes a reply and records it in metrics and log; nothing after this can change the answer. */
export function finished(edge: Edge, exchange: Exchange, reply: Reply): FinishedReply {
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
export function replyToError(cause: unknown, edge: Edge, requestId: string): Reply {
  if (cause instanceof Refusal) return refusalReply(cause.refusal, cause.details);
  logProblem(edge, requestId, cause);
  return refusalReply('internal_server_error');
}

function logProblem({ logger }: Edge, requestId: string, cause: unknown): void {
  logger.write('ERROR', 'http', `request_id=${requestId} ${problemText(cause)}`);
}
