/**
 * Sends mutated requests, most of them properly signed, to every route of a live authority: none may result in a 500,
 * and every refusal must be a complete envelope.
 */

import { readFileSync } from 'node:fs';
import { parseJson } from '../../src/base/json/parse.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../src/base/json/value.ts';
import { jsonText } from '../../src/base/json/write.ts';
import { formatInstant } from '../../src/base/timestamp.ts';
import type { Route } from '../../src/edge/request/route.ts';
import { ROUTES } from '../../src/edge/routes/table.ts';
import { exampleOf } from '../../src/pages/reference/example.ts';
import type { TestAuthority } from '../support/authority.ts';
import { PROJECT } from '../support/project.ts';
import { freshNonce, operatorRequest, type Received, send } from '../support/requests.ts';
import { signNodeBody } from '../support/signing.ts';
import { mutated } from './mutations.ts';
import type { Random } from './random.ts';

const GOLDEN = new URL('test/vectors/golden-trust.json', PROJECT);

export interface FuzzReport {
  readonly sent: number;
  /** The number of answers by status. */
  readonly statuses: ReadonlyMap<number, number>;
  /** Failures, each with the request that caused it. */
  readonly problems: readonly string[];
}

/** Sends `count` requests, `lanes` at a time. */
export async function fuzz(
  na: TestAuthority,
  random: Random,
  count: number,
  lanes = 8,
): Promise<FuzzReport> {
  const corpus = corpusOf();
  const statuses = new Map<number, number>();
  const problems: string[] = [];
  let left = count;
  async function lane(): Promise<void> {
    while (left > 0) {
      left -= 1;
      const request = nextRequest(na, random, corpus);
      const answer = await send(na, request.method, request.path, request.init);
      statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
      const problem = problemOf(answer);
      if (problem !== null) problems.push(`${problem}: ${describe(request)}`);
    }
  }
  await Promise.all(Array.from({ length: lanes }, lane));
  return { sent: count, statuses, problems };
}

interface FuzzRequest {
  readonly method: string;
  readonly path: string;
  readonly init: { body?: string; headers?: Readonly<Record<string, string>> };
}

/** Genuine bodies by path: those of the golden vectors, and an example generated from each schema. */
type Corpus = ReadonlyMap<string, readonly JsonObject[]>;

function corpusOf(): Corpus {
  const golden = parseJson(readFileSync(GOLDEN, 'utf8'));
  const corpus = new Map<string, JsonObject[]>();
  for (const { path, body } of ROUTES) {
    if (body !== undefined) corpus.set(path, [exampleObject(body)]);
  }
  for (const group of ['build', 'verify']) {
    const byPath = isJsonObject(golden) ? golden[group] : undefined;
    for (const [path, cases] of Object.entries(isJsonObject(byPath) ? byPath : {})) {
      corpus.set(path, [...(corpus.get(path) ?? []), ...requestsIn(cases)]);
    }
  }
  return corpus;
}

function requestsIn(cases: JsonValue): JsonObject[] {
  if (!Array.isArray(cases)) return [];
  return cases
    .map((one: JsonValue) => (isJsonObject(one) ? one.request : undefined))
    .filter(isJsonObject);
}

/** TypeBox schemas serialize to plain JSON Schema. */
function exampleObject(schema: object): JsonObject {
  const example = exampleOf(JSON.parse(JSON.stringify(schema)) as JsonValue);
  return isJsonObject(example) ? example : {};
}

function nextRequest(na: TestAuthority, random: Random, corpus: Corpus): FuzzRequest {
  const route = random.one(ROUTES);
  const path = filledPath(route, random);
  if (route.method === 'GET')
    return { method: 'GET', path: path + queryFor(route, random), init: {} };
  const genuine = random.one(corpus.get(route.path) ?? [{}]);
  const body = random.next() < 0.1 ? genuine : mutated(genuine, random);
  return { method: route.method, path, init: signed(na, route, path, body, random) };
}

/** Signed as the route requires; sometimes with the wrong key, or not at all. */
function signed(
  na: TestAuthority,
  route: Route,
  path: string,
  body: JsonObject,
  random: Random,
): FuzzRequest['init'] {
  if (random.next() < 0.05) return { body: jsonText(body) };
  if (route.access.startsWith('operator')) {
    const operator = random.next() < 0.1 ? na.standard : na.privileged;
    return operatorRequest(na, path, body, { method: route.method, operator }).init;
  }
  if (route.access !== 'node') return { body: jsonText(body) };
  const key = random.one([na.standard.key, na.privileged.key]);
  const timestamp = formatInstant(na.clock.now());
  const { node_public_key: _replaced, ...rest } = body;
  const signedBody = signNodeBody({ ...rest, node_public_key: key.publicKey }, key, {
    timestamp,
    nonce: freshNonce(),
  });
  const isInSession = route.hasSessions === true && random.next() < 0.3;
  return {
    body: jsonText(signedBody),
    ...(isInSession && { headers: { 'X-Mesh-Session': sessionClaim(timestamp, random) } }),
  };
}

/** Three out of four headers are well formed. */
function sessionClaim(timestamp: string, random: Random): string {
  const mac = `${'A'.repeat(43)}=`;
  const parts = ['v1', timestamp.replace('20', '21'), timestamp, mac];
  if (random.next() < 0.25) parts[Math.floor(random.next() * 4)] = random.one(PATH_VALUES);
  return parts.join(' ');
}

const PATH_VALUES = [
  'x',
  'ops-standard',
  '%00',
  '%E2%80%AE',
  'constructor',
  '1'.repeat(300),
  'a/b',
  '%2e%2e',
];

function filledPath({ path }: Route, random: Random): string {
  // These values never name the privileged key, which must stay usable, or every later request would be refused for
  // that alone.
  return path.replace(/\{\w+\}/g, () => random.one(PATH_VALUES));
}

const QUERY_VALUES = [
  '',
  'x',
  '%ff',
  '%00',
  '+',
  'a&a',
  // Three of them fit into the longest head that uWebSockets.js passes on with Node.js 22 and later.
  '1'.repeat(700),
  '%F0%9F%98%80',
  '-1',
  '1e9',
];

function queryFor({ query }: Route, random: Random): string {
  const names = [...Object.keys(query?.properties ?? {}), 'limit', 'cursor', 'x'];
  const parts = Array.from(
    { length: random.below(4) },
    () => `${random.one(names)}=${random.one(QUERY_VALUES)}`,
  );
  return parts.length === 0 ? '' : `?${parts.join('&')}`;
}

function problemOf({ status, headers, body }: Received): string | null {
  if (status >= 500 && status !== 503) return `answered ${status}`;
  const id = headers.get('x-request-id');
  if (id === null) return 'has no request id';
  if (status < 400) return null;
  const error = body?.error;
  const isWhole =
    typeof error?.code === 'string' &&
    typeof error.message === 'string' &&
    isJsonObject(error.details) &&
    error.request_id === id;
  return isWhole ? null : 'has no whole envelope';
}

function describe({ method, path, init }: FuzzRequest): string {
  return `${method} ${path} ${(init.body ?? '').slice(0, 2000)}`;
}
