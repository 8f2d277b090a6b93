/**
 * A route is one declarative entry: routing, access checks, limits, the OpenAPI document and the tests
 * that prove the surface are all read from it. Access and limit have no default.
 */
import type { TObject, TSchema } from 'typebox';
import type { JsonObject } from '../base/json/value.ts';
import type { RefusalName } from '../base/refusal.ts';

/** What is limited by source [core-4-1], each on its own. */
export const RATE_BUCKETS = [
  'ADMIN',
  'ADMIN_FAILURES',
  'VERIFY',
  'POLICY_READ',
  'TRUST_PATH',
  'EXPLAIN',
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

/** A route as it is documented. */
export interface RouteDescription {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** May hold `{name}` for one path segment. */
  readonly path: string;
  readonly access: Access;
  readonly limit: RateBucket | 'none';
  /** True when the last `{name}` takes the rest of the path, slashes included. */
  readonly pathEnd?: true;
  /** Query parameters, of which a handler reads the texts: nothing is checked by this. */
  readonly query?: TObject;
  /** To readers who prefer HTML, a page in place of the envelope says what does not exist, or that there is a limit. */
  readonly hasErrorPage?: true;
  /** Its answer carries an `ETag`, and a reader who holds it is answered 304. */
  readonly hasEtag?: true;
  /** Its last answer is given again while nobody is known who writes, as one that may be outdated [link-6]. */
  readonly hasLastCopy?: true;
  /** Its answer goes on until either side ends it. */
  readonly isStream?: true;
  readonly summary: string;
  readonly description?: string;
  readonly body?: TObject;
  /** Members of the example body that say more than what the schema generates. */
  readonly example?: JsonObject;
  /** What the example lacks to succeed, in words that follow `needs`, and what it is refused with. */
  readonly exampleNeeds?: { readonly what: string; readonly otherwise: RefusalName };
  /** Largest body in bytes, where it is not that of the access class. */
  readonly maxBodyBytes?: number;
  readonly answer: TSchema | { readonly contentType: string };
  /** Refusals of this route in addition to the general ones of its access class. */
  readonly refusals: readonly RefusalName[];
  /** Whether success is 201: always, or on the six routes where MESH_CREATED_STATUS says so. */
  readonly created?: 'always' | 'as_configured';
  /** A request that is sent again, marked as such, gets its first answer [core-2-5]. */
  readonly keepsAnswer: boolean;
}

const KIB = 1024;

/** The most bytes that are read and parsed, by the access class of the sender [core-4-1]. */
const BODY_BYTES: Readonly<Record<Access, number>> = {
  public: 512 * KIB,
  internal: 0,
  node: 16 * KIB,
  operator: 256 * KIB,
  'operator-privileged': 256 * KIB,
  'public-or-operator': 0,
};

/**
 * The most JSON values in a public body. A small value costs as much as hundreds of bytes of text: reading,
 * checking and writing a quarter of a million of them took 150 ms.
 */
const PUBLIC_BODY_VALUES = 32_768;

/** For long lists that operators import or publish. */
export const LARGE_BODY_BYTES = 2048 * KIB;

/** Bytes that a body of the route may have; MESH_MAX_REQUEST_BYTES may allow fewer. */
export function maxBodyBytes({ method, access, maxBodyBytes: own }: RouteDescription): number {
  return method === 'GET' ? 0 : (own ?? BODY_BYTES[access]);
}

/** Values that a body of the route may have; undefined where the bound on bytes suffices. */
export function maxBodyValues({ access }: RouteDescription): number | undefined {
  return access === 'public' ? PUBLIC_BODY_VALUES : undefined;
}

export function isOperatorRoute({ access }: RouteDescription): boolean {
  return access === 'operator' || access === 'operator-privileged';
}
