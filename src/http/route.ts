/**
 * A route is one declarative entry: routing, access checks, limits, the OpenAPI document and the tests
 * that prove the surface are all read from it. Access and limit have no default.
 */
import type { TObject, TSchema } from 'typebox';
import type { SignedRequest } from '../auth/signed-request.ts';
import { CALLS, type CallName, type OperatorCallName } from '../contract/calls.ts';
import type { Input, NodeClaim, OperatorClaim } from '../contract/claims.ts';
import type { RefusalName } from '../refusal.ts';
import type { Edge } from './edge.ts';
import type { RateBucket } from './rate-limit.ts';
import type { Reply } from './reply.ts';

export type Access =
  | 'public'
  /** Not gated in code; the deployment restricts it. */
  | 'internal'
  /** The body or the proof header proves possession of a node key. */
  | 'node'
  | 'operator'
  | 'operator-privileged'
  /** Public form without operator headers; with them, they must verify. */
  | 'public-or-operator';

export interface RouteRequest extends SignedRequest {
  readonly id: string;
  /** Values of the `{names}` in the path template, percent-decoded. */
  readonly params: { readonly [name: string]: string };
  /** Milliseconds since the epoch: the edge's one clock reading for this request. */
  readonly now: number;
  readonly remoteAddr: string;
  readonly baseUrl: string;
  readonly ifNoneMatch: string;
  readonly acceptsGzip: boolean;
  /** Set where the route says whose possession a request proves, and the request names a key. */
  readonly node: NodeClaim | null;
  /** Set on operator routes, and on public ones that were called with operator headers. */
  readonly operator: OperatorClaim | null;
}

/** Whose possession a request to a route of nodes proves. */
export interface NodeProofRule {
  /** The key that the request claims; null when it names none. */
  keyOf(request: RouteRequest): string | null;
  /** Where the body is signed in another way, only the header form is judged, and may be absent. */
  readonly form: 'body or header' | 'header if sent';
}

interface Described {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** May hold `{name}` for one path segment. */
  readonly path: string;
  readonly limit: RateBucket | 'none';
  /** Set on every route of nodes. */
  readonly proof?: NodeProofRule;
  /** True when the last `{name}` takes the rest of the path, slashes included. */
  readonly pathEnd?: true;
  /** Query parameters and what they mean; all are optional here, a handler may demand one. */
  readonly query?: { readonly [name: string]: string };
  readonly summary: string;
  readonly description?: string;
  readonly body?: TObject;
  /** Largest body in bytes, where it is not that of the access class. */
  readonly maxBodyBytes?: number;
  readonly answer: TSchema | { readonly contentType: string };
  /** Refusals of this route beside the general ones of its access class. */
  readonly refusals: readonly RefusalName[];
  /** Whether success is 201: always, or on the six routes where MESH_CREATED_STATUS says so. */
  readonly created?: 'always' | 'as_configured';
  handle(request: RouteRequest, edge: Edge): Reply | Promise<Reply>;
}

/**
 * A route as it is written down. Its access is that of the call it stands for; one that stands for none
 * is open to anyone, or is left to the deployment.
 */
export type RouteEntry = Described &
  (
    | {
        readonly call: CallName;
        /** The call instead of the public one when operator headers were sent. */
        readonly operatorCall?: OperatorCallName;
      }
    | { readonly call?: never; readonly access: 'public' | 'internal' }
  );

export type Route = Described & {
  readonly access: Access;
  /** Null when the edge answers by itself. */
  readonly call: CallName | null;
};

/** The access class of a route is read from the call, where it is stated. */
export function withAccess(entry: RouteEntry): Route {
  if (entry.call === undefined) return { ...entry, call: null };
  const { access } = CALLS[entry.call];
  return { ...entry, access: entry.operatorCall === undefined ? access : 'public-or-operator' };
}

const KIB = 1024;

/** What a stranger can make us read and parse, by who is to send it (wire rules 4.1). */
const BODY_BYTES: Readonly<Record<Access, number>> = {
  public: 512 * KIB,
  internal: 0,
  node: 16 * KIB,
  operator: 256 * KIB,
  'operator-privileged': 256 * KIB,
  'public-or-operator': 0,
};

/** For what operators import or publish as one long list. */
export const LARGE_BODY_BYTES = 2048 * KIB;

/** Bytes that a body of the route may have; MESH_MAX_REQUEST_BYTES may allow fewer. */
export function maxBodyBytes({ method, access, maxBodyBytes: own }: Route): number {
  return method === 'GET' ? 0 : (own ?? BODY_BYTES[access]);
}

export function isOperatorRoute(route: Route): boolean {
  return route.access === 'operator' || route.access === 'operator-privileged';
}

/** Sorts out the claim of a route that only operators reach. */
export function operatorOf(request: RouteRequest): OperatorClaim {
  if (request.operator === null) throw new Error('An operator route was reached without a claim');
  return request.operator;
}

/** The input of a call that takes none. */
export const NOTHING: Input<null> = { ok: true, value: null };
