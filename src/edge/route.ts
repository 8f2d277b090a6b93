/** Routes with their handlers, and the derivation of their access. */

import type { Input } from '../protocol/api/input.ts';
import {
  CALLS,
  type CallName,
  keepsAnswer,
  type OperatorCallName,
} from '../protocol/contract/calls.ts';
import type { NodeClaim, OperatorClaim } from '../protocol/contract/claims.ts';
import {
  isOperatorRoute,
  type RouteDescription,
  waitsForSlice,
} from '../protocol/route-description.ts';
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

/** The request proves possession of the `node_public_key` of its body. */
export const BODY_KEY_PROOF: NodeProofRule = {
  keyOf({ body }) {
    const { node_public_key: key } = body;
    return typeof key === 'string' ? key : null;
  },
  form: 'body or header',
};

interface Handled {
  /** Set on every node route. */
  readonly proof?: NodeProofRule;
  handle(request: RouteRequest, edge: Edge): Reply | Promise<Reply>;
}

/**
 * The declaration of a route. Its call determines its access; a route without a call is public, or is restricted by
 * the deployment.
 */
export type RouteEntry = Omit<RouteDescription, 'access' | 'keepsAnswer'> &
  Handled &
  (
    | {
        readonly call: CallName;
        /** The call to make instead if operator headers were sent. */
        readonly operatorCall?: OperatorCallName;
      }
    | { readonly call?: never; readonly access: 'public' | 'internal' }
  );

/** What anyone may read as often as they like, with a validator for conditional requests. */
export const PUBLIC_DOCUMENT = {
  method: 'GET',
  access: 'public',
  limit: 'none',
  hasEtag: true,
} as const;

export const PUBLIC_PAGE = {
  ...PUBLIC_DOCUMENT,
  answer: { contentType: 'text/html; charset=utf-8' },
} as const;

export interface Route extends RouteDescription, Handled {
  /** Null if the edge answers by itself. */
  readonly call: CallName | null;
  /** The line in which requests without the headers of an operator wait; null if they do not wait. */
  readonly line: Line | null;
}

/** Derives the access class of a route from its call, and whether its answers are kept. */
export function withAccess(entry: RouteEntry): Route {
  if (entry.call === undefined) {
    return { ...entry, call: null, keepsAnswer: false, line: lineOf(entry) };
  }
  const isKept = keepsAnswer(entry.call);
  const access = entry.operatorCall === undefined ? CALLS[entry.call].access : 'public-or-operator';
  return {
    ...entry,
    access,
    keepsAnswer: isKept,
    refusals: isKept ? [...entry.refusals, 'already_done'] : entry.refusals,
    line: lineOf({ ...entry, access }),
  };
}

function lineOf(route: Omit<RouteDescription, 'keepsAnswer'>): Line | null {
  if (route.isProbe === true) return null;
  if (!waitsForSlice(route)) return 'document';
  if (route.access === 'node') return 'node';
  return isOperatorRoute(route) ? 'operator' : 'public';
}

/** Returns the claim on a route that only operators can reach. */
export function operatorOf(request: RouteRequest): OperatorClaim {
  if (request.operator === null) throw new Error('An operator route was reached without a claim');
  return request.operator;
}

/** The input of a call without input. */
export const NOTHING: Input<null> = { ok: true, value: null };
