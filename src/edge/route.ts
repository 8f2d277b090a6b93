/** Routes: declared operations with what answers them. */

import type { Input } from '../protocol/api/input.ts';
import type { OperationName } from '../protocol/api/table.ts';
import type { CallName } from '../protocol/contract/calls.ts';
import type { NodeClaim, OperatorClaim } from '../protocol/contract/claims.ts';
import type { NamedRoute } from '../protocol/route-description.ts';
import type { SignedRequest } from './auth/signed-request.ts';
import type { Edge } from './edge.ts';
import type { Reply } from './reply.ts';
import type { Line } from './request-queue.ts';

export interface RouteRequest extends SignedRequest {
  readonly id: string;
  /** Values of the `{names}` in the path template, percent-decoded. */
  readonly params: { readonly [name: string]: string };
  /** Milliseconds since the epoch: the edge's one clock reading for this request. */
  readonly now: number;
  readonly remoteAddr: string;
  /** Empty unless the route has `usesBaseUrl`. */
  readonly baseUrl: string;
  readonly ifNoneMatch: string;
  readonly acceptsGzip: boolean;
  /** The last event received in an earlier answer; empty if not sent. Only on routes with `isStream`. */
  readonly lastEventId: string;
  /** Only on routes with `hasErrorPage`. */
  readonly wantsErrorPage: boolean;
  /** Set if the route requires proof of a key and the request claims one. */
  readonly node: NodeClaim | null;
  /** Set on operator routes, and on public routes called with operator headers. */
  readonly operator: OperatorClaim | null;
  /** Work for a client that has disconnected is in vain. */
  readonly client: Client;
}

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
  handle(request: RouteRequest, edge: Edge): Reply | Promise<Reply>;
}

/** Returns the claim on a route that only operators can reach. */
export function operatorOf(request: RouteRequest): OperatorClaim {
  if (request.operator === null) throw new Error('An operator route was reached without a claim');
  return request.operator;
}

/** The input of a call without input. */
export const NOTHING: Input<null> = { ok: true, value: null };
