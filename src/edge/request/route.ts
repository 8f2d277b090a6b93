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
type Unmatched = 'undecodable' | 'not_found' | { readonly allow: string };

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

type Match =
  | { readonly route: Route; readonly params: { readonly [name: string]: string } }
  | Unmatched;

/** Finds the route for a method and a path in which reserved characters are still percent-encoded. */
export type Router = (method: string, path: string) => Match;

interface Template {
  readonly pattern: RegExp;
  readonly names: readonly string[];
  readonly pathEnd: boolean;
  readonly methods: Map<string, Route>;
}

const NO_PARAMS = {};

/** Throws at startup for a duplicate method and path. */
export function createRouter(routes: readonly Route[]): Router {
  const exact = new Map<string, Map<string, Route>>();
  const templates = new Map<string, Template>();
  for (const route of routes) {
    const methods = route.path.includes('{')
      ? templateFor(templates, route).methods
      : methodsFor(exact, route.path);
    if (methods.has(route.method)) throw new Error(`${route.method} ${route.path} occurs twice`);
    methods.set(route.method, route);
  }

  return (method, path) => {
    const methods = exact.get(path);
    if (methods !== undefined) return pick(methods, method, NO_PARAMS);
    for (const template of templates.values()) {
      const match = template.pattern.exec(path);
      if (match !== null) return pick(template.methods, method, paramsOf(template, match));
    }
    return 'not_found';
  };
}

function methodsFor(exact: Map<string, Map<string, Route>>, path: string): Map<string, Route> {
  const methods = exact.get(path) ?? new Map<string, Route>();
  exact.set(path, methods);
  return methods;
}

function templateFor(templates: Map<string, Template>, route: Route): Template {
  const { path, pathEnd = false } = route;
  const known = templates.get(path);
  if (known !== undefined) return known;
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
  const source = path
    .replace(/[.*+?^$()|[\]\\]/g, '\\$&')
    .replace(/\{\w+\}/g, pathEnd ? '(.+)' : '([^/]+)');
  const template = { pattern: new RegExp(`^${source}$`), names, pathEnd, methods: new Map() };
  templates.set(path, template);
  return template;
}

function paramsOf(
  { names, pathEnd }: Template,
  match: RegExpExecArray,
): { [name: string]: string } {
  const params: { [name: string]: string } = {};
  for (const [index, name] of names.entries()) {
    const value = decodeURIComponent(match[index + 1] ?? '');
    params[name] = pathEnd ? value.replace(/\/$/, '') : value;
  }
  return params;
}

function pick(
  methods: Map<string, Route>,
  method: string,
  params: { readonly [name: string]: string },
): Match {
  const route = methods.get(method === 'HEAD' ? 'GET' : method);
  if (route !== undefined) return { route, params };
  const allowed = [...methods.keys()];
  return { allow: (methods.has('GET') ? [...allowed, 'HEAD'] : allowed).join(', ') };
}

/** The path that routes are matched on: unreserved characters mean the same encoded or not [core-4-1]. */
export function matchedPath(path: string): string {
  if (!path.includes('%')) return path;
  return path.replace(UNRESERVED, (encoded) => decodeURIComponent(encoded));
}

/** A letter, a digit, `-`, `.`, `_` or `~`, percent-encoded. */
const UNRESERVED = /%(?:2[DE]|3[0-9]|[46][1-9A-F]|[57][0-9A]|5F|7E)/gi;

/** The request path in its signed form: percent-decoded UTF-8; null if it cannot be decoded. */
export function decodePath(path: string): string | null {
  if (!path.includes('%')) return path;
  try {
    return decodeURIComponent(path);
  } catch {
    return null;
  }
}
