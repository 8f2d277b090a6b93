import type { Route, Unmatched } from './route.ts';

export type Match =
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
