/**
 * A route is one declarative entry, which drives routing, access checks, limits, the OpenAPI document and the tests of
 * the whole API. Access and limit have no default.
 */
import type { TObject, TSchema } from 'typebox';
import type { JsonObject } from '../base/json/value.ts';
import type { RefusalName } from './refusals.ts';

/** The separate rate limits per source [core-4-1]. */
export const RATE_BUCKETS = [
  'ADMIN',
  'VERIFY',
  'POLICY_READ',
  'TRUST_PATH',
  'EXPLAIN',
  'SEARCH',
  'HISTORY',
  'AGENTS',
  'AGENT_DELETE',
  'JOIN',
  'JOIN_FAILURES',
  'NODE_FAILURES',
  'HEARTBEAT',
  'RENEW',
] as const;

export type RateBucket = (typeof RATE_BUCKETS)[number];

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

/** The documented part of a route. */
export interface RouteDescription {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** May contain `{name}` for one path segment. */
  readonly path: string;
  readonly access: Access;
  readonly limit: RateBucket | 'none';
  /** True when the last `{name}` takes the rest of the path, slashes included; one trailing slash is ignored. */
  readonly pathEnd?: true;
  /** Query parameters. This schema only documents them; handlers read and check the raw values. */
  readonly query?: TObject;
  /** For clients that prefer HTML, a page instead of the error envelope reports a missing item or a rate limit. */
  readonly hasErrorPage?: true;
  /** The answer is as long as the network is large; a list is, too, unless one page of it is requested. */
  readonly growsWithNetwork?: true;
  /** The answer has an `ETag`, and a client that sends it back gets a 304. */
  readonly hasEtag?: true;
  /** While no instance is active, its last answer is repeated, marked as possibly outdated [link-6]. */
  readonly hasLastCopy?: true;
  /** The answer depends on the URL under which the client reached this service. */
  readonly usesBaseUrl?: true;
  /** Whether the service lives or is ready: answered before everything that waits. */
  readonly isProbe?: true;
  /** Every instance answers it, whether it is active or not, unless its part in the edge does not know it [link-3]. */
  readonly isOwn?: true;
  /** The answer continues until either side ends it. */
  readonly isStream?: true;
  readonly summary: string;
  readonly description?: string;
  readonly body?: TObject;
  /** Members of the example body, at any depth, that are more helpful than the generated ones. */
  readonly example?: JsonObject;
  /** What the example lacks to succeed, in words that follow `needs`, and the refusal it gets otherwise. */
  readonly exampleNeeds?: { readonly what: string; readonly otherwise: RefusalName };
  /** Largest body in bytes, if it differs from that of the access class. */
  readonly maxBodyBytes?: number;
  readonly answer: TSchema | { readonly contentType: string };
  /** Refusals of this route in addition to those of its access class. */
  readonly refusals: readonly RefusalName[];
  /** A heartbeat session may prove the request in place of a signature [core-3-4]. */
  readonly hasSessions?: true;
  /** Whether success is 201: always, or as MESH_CREATED_STATUS says on six of the routes. */
  readonly created?: 'always' | 'as_configured';
  /** Whether a repeated request, marked as such, gets its first answer [core-2-5]. */
  readonly keepsAnswer: boolean;
}

/** A route with the name of its operation, which is that of the client's method, too. */
export interface NamedRoute extends RouteDescription {
  readonly name: string;
}

const KIB = 1024;

/** The most bytes that are read and parsed, by access class [core-4-1]. */
const BODY_BYTES: Readonly<Record<Access, number>> = {
  public: 512 * KIB,
  internal: 0,
  node: 16 * KIB,
  operator: 256 * KIB,
  'operator-privileged': 256 * KIB,
  'public-or-operator': 0,
};

/**
 * The most JSON values in a public body. A small value costs as much as hundreds of bytes of text: reading, checking
 * and writing a quarter million of them took 150 ms.
 */
const PUBLIC_BODY_VALUES = 32_768;

/** For long lists that operators import or publish. */
export const LARGE_BODY_BYTES = 2048 * KIB;

/** The most bytes of a body of the route; MESH_MAX_REQUEST_BYTES may lower it. */
export function maxBodyBytes({ method, access, maxBodyBytes: own }: RouteDescription): number {
  return method === 'GET' ? 0 : (own ?? BODY_BYTES[access]);
}

/** The most values in a body of the route; undefined if the limit on bytes suffices. */
export function maxBodyValues({ access }: RouteDescription): number | undefined {
  return access === 'public' ? PUBLIC_BODY_VALUES : undefined;
}

/**
 * Whether requests of the route wait for a slice that they share with all that makes answers, and are refused if it
 * comes too late. Probes and documents that are kept as bytes do not. What a document with a last copy gained since a
 * version is kept, too; any other query makes the answer.
 */
export function waitsForSlice({
  isProbe,
  hasEtag,
  hasLastCopy,
  query,
}: Pick<RouteDescription, 'isProbe' | 'hasEtag' | 'hasLastCopy' | 'query'>): boolean {
  const isKept = hasEtag === true && (query === undefined || hasLastCopy === true);
  return isProbe !== true && !isKept;
}

/** Refusals that every route of an access class can give, in addition to its own. */
const ACCESS_REFUSALS: Readonly<Record<RouteDescription['access'], readonly RefusalName[]>> = {
  public: [],
  internal: [],
  node: ['node_auth_failed'],
  operator: ['admin_auth_failed'],
  'operator-privileged': ['admin_auth_failed', 'insufficient_operator_tier'],
  'public-or-operator': ['admin_auth_failed'],
};

/** What a route refuses by itself, by its access class, and because it waits; not by a limit. */
export function refusalsOf(route: RouteDescription): RefusalName[] {
  const { refusals, access } = route;
  const waiting: readonly RefusalName[] = waitsForSlice(route) ? ['overloaded'] : [];
  return [...new Set([...refusals, ...ACCESS_REFUSALS[access], ...waiting])];
}

export function isOperatorRoute({ access }: Pick<RouteDescription, 'access'>): boolean {
  return access === 'operator' || access === 'operator-privileged';
}
