/** Routes: declared operations with what answers them, and the requests that reach them. */

import type { OperationName } from '../../protocol/api/table.ts';
import type { CallName } from '../../protocol/contract/calls.ts';
import type { NodeClaim, OperatorClaim } from '../../protocol/contract/claims.ts';
import type { NamedRoute } from '../../protocol/route-description.ts';
import type { OperatorHeaders } from '../auth/operator.ts';
import type { ReceivedRequest } from '../auth/signed-request.ts';
import type { Edge } from '../edge.ts';
import type { Line } from '../limits/request-queue.ts';
import type { Reply } from '../reply.ts';
import type { CorsRequest } from './cors.ts';

/** A request: its head, and then what `answer.ts` adds. */
export interface Request extends ReceivedRequest {
  readonly id: string;
  /** Milliseconds on the monotonic clock. */
  readonly started: number;
  /** The process is stopping and accepts no new work. */
  readonly isRefused: boolean;
  /** Another instance has forwarded it. */
  readonly isForwarded: boolean;
  /** As sent; the route of a HEAD has the method GET. */
  readonly sentMethod: string;
  /** As sent. */
  readonly rawPath: string;
  /** As sent. */
  readonly rawQuery: string;
  /** Null if `unmatched` says why there is none. */
  readonly route: Route | null;
  readonly unmatched: Unmatched | null;
  /** Values of the `{names}` in the path template, percent-decoded. */
  readonly params: { readonly [name: string]: string };
  /** False if the answer does not depend on a body. */
  readonly takesBody: boolean;
  /** The line in which the request waits; null if it does not wait. */
  readonly line: Line | null;
  readonly operatorHeaders: OperatorHeaders | null;
  readonly nodeProof: string;
  /** The header of a heartbeat session; empty if there is none. */
  readonly session: string;
  /** Whether the request may have arrived before, and its answer is kept. */
  readonly isRepeat: boolean;
  readonly ifNoneMatch: string;
  readonly acceptsGzip: boolean;
  /** The last event received in an earlier answer; empty unless the route answers with a stream. */
  readonly lastEventId: string;
  /** Whether the client prefers an HTML page if the path, or the item it names, does not exist. */
  readonly wantsErrorPage: boolean;
  /** Empty unless the route has `usesBaseUrl`. */
  readonly baseUrl: string;
  /** Null if no origins are configured. */
  readonly cors: CorsRequest | null;
  /** Work for a client that has disconnected is in vain. */
  client: Client;
  /** Set if the route requires proof of a key and the request claims one. */
  node: NodeClaim | null;
  /** Set on operator routes, and on public routes called with operator headers. */
  operator: OperatorClaim | null;
}

/** A request as its handler sees it. */
export type RouteRequest = Readonly<Request>;

/** The path cannot be decoded, does not exist, or does not allow the method. */
export type Unmatched = 'undecodable' | 'not_found' | { readonly allow: string };

export interface Client {
  readonly aborted: boolean;
}

/** The key whose possession a request to a node route proves. */
export interface NodeProofRule {
  /** The key that the request claims; null if there is none. */
  keyOf(request: RouteRequest): string | null;
  /** If the body has a different signature, only the header form is checked, and it may be absent. */
  readonly form: 'body or header' | 'header if sent';
}

export interface Route extends NamedRoute {
  readonly name: OperationName;
  /** Null if the edge answers by itself. */
  readonly call: CallName | null;
  /** The line in which requests without the headers of an operator wait; null if they do not wait. */
  readonly line: Line | null;
  /** Set on every node route. */
  readonly proof?: NodeProofRule;
  /** Of what every instance answers: whether this one can, if that depends on the path. */
  knows?(params: RouteRequest['params']): boolean;
  handle(request: RouteRequest, edge: Edge): Reply | Promise<Reply>;
}

/** Returns the claim on a route that only operators can reach. */
export function operatorOf(request: RouteRequest): OperatorClaim {
  if (request.operator === null) throw new Error('An operator route was reached without a claim');
  return request.operator;
}

/** Whether another instance must answer, because this one is not active. */
export function isAnsweredElsewhere(
  { instanceStatus }: Edge,
  { isRefused, route, params }: Request,
): boolean {
  if (instanceStatus === null || instanceStatus.isActive() || isRefused) return false;
  return !route?.isOwn || route.knows?.(params) === false;
}
