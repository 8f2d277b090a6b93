/**
 * The route table: its limits and answers, and that routes and the authority use one declaration of access. `docs.test.ts`
 * compares it with the tables of the contract.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import Type, { type TSchema } from 'typebox';
import { HANDLERS } from '../src/authority/commands.ts';
import { admitCalls, type Handlers } from '../src/authority/engine/admission.ts';
import type { JsonObject } from '../src/base/json/value.ts';
import { createRouter, type Route } from '../src/edge/request/route.ts';
import { ROUTES } from '../src/edge/routes/table.ts';
import { bodyExample, pathExamples, queryExamples } from '../src/pages/reference/example.ts';
import { CALLS, type CallName } from '../src/protocol/contract/calls.ts';
import { REFUSALS } from '../src/protocol/refusals.ts';
import { sharedAuthority, startTestAuthority, type TestAuthority } from './support/authority.ts';
import { PROJECT_PATH } from './support/project.ts';
import {
  auditEvents,
  get,
  invite,
  joinedNode,
  newKey,
  nodeRequest,
  operate,
  operatorRequest,
  outcome,
  type Received,
  send,
  sendSigned,
} from './support/requests.ts';

/** For tests that leave nothing behind that another test would notice. */
const shared = sharedAuthority({ environment: { MESH_ADMIN_SIGNATURE_V1: 'accept' } });

/** The six routes to which MESH_CREATED_STATUS applies [core-4-1]. */
const CREATING = [
  'POST /join',
  'POST /renew',
  'POST /admin/invite',
  'POST /admin/policy',
  'POST /admin/attestations',
  'POST /admin/recognition-treaties',
];

/** Probes, and what is kept as bytes: the public documents [core-4-1], and pages without a query. */
const ANSWERED_AT_ONCE = [
  ...['/healthz', '/readyz', '/', '/api-reference', '/cli-reference', '/data-usage/policy'],
  ...['/genesis', '/authority-keys', '/sovereign.json', '/policy', '/crl', '/bulletin'],
  ...['/sovereign-revocation-feed', '/recognition-graph', '/connectome.json', '/atlas.json'],
  ...['/dashboard.json', '/swagger.json', '/assets/{digest}.css', '/assets/{digest}.js'],
];

test('exactly the requests for these wait for nothing that makes answers, and probes for nothing at all', () => {
  const pathsIn = (...lines: readonly Route['line'][]) =>
    ROUTES.filter(({ line }) => lines.includes(line))
      .map(({ path }) => path)
      .sort();
  assert.deepEqual(pathsIn(null, 'document'), [...ANSWERED_AT_ONCE].sort());
  assert.deepEqual(pathsIn(null), ['/healthz', '/readyz']);
});

test('a second entry for a method and path prevents the start', () => {
  for (const route of ROUTES.filter((_, index) => index % 30 === 0)) {
    assert.throws(() => createRouter([...ROUTES, route]), {
      message: `${route.method} ${route.path} occurs twice`,
    });
  }
});

test('a request counts against the limit of its route, of which verifications have one each', async () => {
  // What counts of a search is its query.
  const isCounted = ({ limit }: Route) => limit !== 'none' && limit !== 'SEARCH';
  const limits = new Set(ROUTES.filter(isCounted).map(({ limit }) => limit));
  const environment = Object.fromEntries(
    [...limits].map((limit) => [`MESH_RATE_LIMIT_${limit}`, '1/60']),
  );
  await using na = await startTestAuthority({ environment });
  const bucketOf = ({ limit, path }: Route) => (limit === 'VERIFY' ? path : limit);
  const spent = new Set<string>();
  for (const route of [...ROUTES, ...ROUTES]) {
    const { status } = await send(na, route.method, pathOf(route));
    assert.equal(status === 429, spent.has(bucketOf(route)), nameOf(route));
    if (isCounted(route)) spent.add(bucketOf(route));
  }
});

test('exactly the routes that MESH_CREATED_STATUS names are marked as creating', () => {
  const names = ROUTES.map(nameOf);
  assert.deepEqual(
    ROUTES.filter(({ created }) => created === 'as_configured')
      .map(nameOf)
      .sort(),
    CREATING.filter((name) => names.includes(name)).sort(),
  );
});

for (const status of [200, 201]) {
  test(`MESH_CREATED_STATUS=${status} is the status of joins, renewals and invites, and of no other route`, async () => {
    const environment = { MESH_CREATED_STATUS: String(status) };
    await using na = await startTestAuthority({ environment });
    const key = newKey();
    const created = [
      await operate(na, '/admin/invite'),
      await nodeRequest(na, '/join', key, { invite_token: await invite(na) }),
    ];
    const certId = created[1]?.body.cert_id;
    created.push(await nodeRequest(na, '/renew', key, { cert_id: certId }));
    assert.deepEqual(created.map(statusOf), [status, status, status]);
    const others = [
      await nodeRequest(na, '/heartbeat', key, { cert_id: certId }),
      await operate(na, '/admin/revoke', { cert_id: certId }),
      await operate(na, '/admin/operator-keys/ops-standard/revoke'),
      await get(na, '/crl'),
    ];
    assert.deepEqual(others.map(statusOf), [200, 200, 200, 200]);
  });
}

test('a privileged route refuses a standard key, and nothing is changed', async () => {
  const na = await shared();
  const before = await publicState(na);
  const privileged = ROUTES.filter(({ access }) => access === 'operator-privileged');
  for (const [index, route] of privileged.entries()) {
    for (const version of index === 0 ? ([1, 2] as const) : ([2] as const)) {
      const call = { operator: na.standard, method: route.method, version };
      const answer = await operate(na, pathOf(route), { note: 'bound' }, call);
      assert.equal(outcome(answer), '403 insufficient_operator_tier', nameOf(route));
    }
  }
  assert.deepEqual(await publicState(na), before);
});

test('a route lets an operator of its tier pass to its own checks', async () => {
  const na = await shared();
  for (const route of ROUTES.filter(({ access }) => access.startsWith('operator'))) {
    const operator = route.access === 'operator' ? na.standard : na.privileged;
    const answer = await operate(na, pathOf(route), {}, { operator, method: route.method });
    const name = `${nameOf(route)}: ${outcome(answer)}`;
    assert.ok(![401, 403, 405, 429, 500].includes(answer.status), name);
  }
});

// The checks before any route's own [trust-1-4]

test('an operator is authenticated before any member is read', async () => {
  const na = await shared();
  for (const route of ROUTES.filter(({ access }) => access.startsWith('operator'))) {
    const { method } = route;
    const path = pathOf(route);
    const operator = { keyId: 'ops-standard', key: newKey() };
    for (const [name, answer] of [
      ['unsigned', send(na, method, path)],
      ['signed by another key', operate(na, path, {}, { method, operator })],
      [
        'signed for another route',
        send(na, method, path, operatorRequest(na, '/elsewhere', {}, { method }).init),
      ],
    ] as const) {
      assert.equal(outcome(await answer), '401 admin_auth_failed', `${path}: ${name}`);
    }
    const request = operatorRequest(na, path, {}, { method });
    assert.notEqual((await sendSigned(na, request)).status, 401);
    assert.equal(outcome(await sendSigned(na, request)), '401 admin_auth_failed', 'a second time');
  }
});

test('a route reads only JSON objects, before anything is verified or audited', async () => {
  const na = await shared();
  const audited = auditEvents(na).length;
  for (const route of ROUTES.filter(({ method }) => method !== 'GET')) {
    for (const [body, expected] of [
      ['{"a":', '400 invalid_json'],
      ['['.repeat(100) + ']'.repeat(100), '400 invalid_json'],
      ['[]', '400 invalid_json_object'],
    ] as const) {
      const answer = await send(na, route.method, pathOf(route), { body });
      assert.equal(outcome(answer), expected, `${nameOf(route)}: ${body.slice(0, 20)}`);
    }
  }
  assert.equal(auditEvents(na).length, audited);
});

test('a request of a node never succeeds without a proof', async () => {
  const na = await shared();
  for (const route of ROUTES.filter(({ access }) => access === 'node')) {
    const node = await joinedNode(na);
    const body = JSON.stringify({
      cert_id: node.certId,
      node_public_key: node.key.publicKey,
      invite_token: await invite(na),
    });
    for (const sent of ['{}', body]) {
      const { status } = await send(na, route.method, pathOf(route), { body: sent });
      assert.ok(status >= 400 && status < 500, `${nameOf(route)}: ${status}`);
    }
  }
});

test('public routes answer everyone', async () => {
  const na = await shared();
  for (const route of ROUTES.filter(({ access }) => /^(public|internal)/.test(access))) {
    const own = route.refusals.map((name) => REFUSALS[name]).filter(({ status }) => status < 500);
    const known = ['200', ...own.map(({ status, code }) => `${status} ${code}`)];
    const answer = outcome(await send(na, route.method, pathOf(route)));
    assert.ok(known.includes(answer), `${nameOf(route)}: ${answer}`);
  }
});

test('other methods are answered with 405 and the methods that are allowed', async () => {
  const na = await shared();
  const ever = ['GET', 'POST', 'DELETE'];
  const all = [...ever, 'HEAD', 'PUT', 'PATCH', 'OPTIONS', 'PROPFIND'];
  for (const [index, route] of ROUTES.entries()) {
    const allowed = ROUTES.filter(({ path }) => path === route.path).flatMap(({ method }) =>
      method === 'GET' ? [method, 'HEAD'] : [method],
    );
    for (const method of index % 20 === 0 ? all : ever) {
      if (allowed.includes(method)) continue;
      const answer = await send(na, method, pathOf(route));
      const name = `${method} ${route.path}`;
      assert.equal(answer.status, 405, name);
      const named = answer.headers.get('allow')?.split(', ');
      assert.deepEqual(named?.toSorted(), allowed.toSorted(), name);
      if (method === 'HEAD') assert.equal(answer.text, '');
      else assert.equal(outcome(answer), '405 method_not_allowed', name);
    }
  }
});

function nameOf({ method, path }: Route): string {
  return `${method} ${path.replace(/\{\w+\}/g, '{}')}`;
}

/** The path with a placeholder for each parameter; streams are requested without following. */
function pathOf({ path, isStream }: Route): string {
  return path.replace(/\{\w+\}/g, 'nobody') + (isStream ? '?follow=0' : '');
}

function statusOf({ status }: Received): number {
  return status;
}

async function publicState(na: TestAuthority): Promise<string[]> {
  const answers = await Promise.all(['/crl', '/policy', '/nodes'].map((path) => get(na, path)));
  return answers.map(({ text }) => text);
}

/** The path of the route with an example for each parameter. */
function examplePath(route: Route): string {
  return pathExamples(route).reduce(
    (path, [name, value]) => path.replace(`{${name}}`, encodeURIComponent(value)),
    route.path,
  );
}

/** Sends the request as an operator if the route allows that. */
function ask(na: TestAuthority, { method, access }: Route, path: string, body?: JsonObject) {
  return access.includes('operator')
    ? operate(na, path, body, { method })
    : send(na, method, path, body === undefined ? {} : { body: JSON.stringify(body) });
}

const UNLIMITED = Object.fromEntries(
  ['ADMIN', 'VERIFY', 'EXPLAIN', 'AGENTS', 'AGENT_DELETE', 'JOIN_FAILURES', 'NODE_FAILURES'].map(
    (bucket) => [`MESH_RATE_LIMIT_${bucket}`, 'off'],
  ),
);

test('no value of a query parameter silently wins over another on any route', async () => {
  const na = await shared();
  let repeatable = 0;
  for (const route of ROUTES) {
    for (const [name, schema] of Object.entries<TSchema>(route.query?.properties ?? {})) {
      const twice = `${examplePath(route)}?${name}=1&${name}=2`;
      const answer = await ask(na, route, twice);
      if (Type.IsArray(schema)) {
        repeatable += 1;
        assert.notEqual(outcome(answer), '400 repeated_parameter', twice);
        continue;
      }
      assert.equal(outcome(answer), '400 repeated_parameter', twice);
      assert.deepEqual(answer.body.error.details, { parameter: name });
    }
    const unknown = await ask(na, route, `${pathOf(route)}${route.isStream ? '&' : '?'}x=1&x=2`);
    assert.notEqual(outcome(unknown), '400 repeated_parameter');
  }
  assert.ok(repeatable > 5, `${repeatable} parameters`);
});

suite('optional members may be empty', { concurrency: 1 }, () => {
  test('an empty query parameter counts as absent on every route', async () => {
    await using na = await startTestAuthority({ environment: UNLIMITED });
    // Lists need rows to show whether something was filtered.
    await joinedNode(na);
    for (const route of ROUTES.filter(({ created }) => created !== undefined)) {
      await ask(na, route, examplePath(route), bodyExample(route, 'alpha'));
    }
    for (const route of ROUTES) {
      const { properties = {} } = route.query ?? {};
      const required = new Set<string>(route.query?.required);
      for (const name of Object.keys(properties)) {
        // A stream that follows the log would not end.
        const follow: [string, string][] = route.path === '/events' ? [['follow', '0']] : [];
        const others = [...queryExamples(route), ...follow]
          .filter(([other]) => other !== name)
          .map(([other, value]): [string, string] => [other, value]);
        const absent = `${examplePath(route)}?${new URLSearchParams(others)}`;
        const empty = `${absent}&${name}=`;
        if (route.isStream && name === 'follow') continue;
        const [without, given] = [await ask(na, route, absent), await ask(na, route, empty)];
        const what = `${empty} of ${route.method}`;
        const shown = [given, without].map((answer) => [outcome(answer), answer.body?.count]);
        assert.deepEqual(shown[0], shown[1], what);
        if (required.has(name)) assert.ok(given.status >= 400, what);
      }
    }
  });

  test('null counts as absent in an optional member of a body, unless it is a record', async () => {
    await using na = await startTestAuthority({ environment: UNLIMITED });
    let members = 0;
    for (const route of ROUTES) {
      const body = bodyExample(route, 'alpha');
      // A body that is itself a signed record has its own table of members.
      if (body === undefined || route.path === '/agents') continue;
      for (const [name, schema] of Object.entries<TSchema>(route.body?.properties ?? {})) {
        if (!Type.IsOptional(schema) || RECORDS.includes(name)) continue;
        members += 1;
        const { [name]: _, ...absent } = body;
        const path = examplePath(route);
        const outcomeOf = async (sent: JsonObject) => outcome(await ask(na, route, path, sent));
        const first = await outcomeOf(absent);
        const given = await outcomeOf({ ...absent, [name]: null });
        // The first request may have changed the answers to those after it.
        if (given !== first) assert.equal(given, await outcomeOf(absent), `${name} of ${path}`);
      }
    }
    assert.ok(members > 40, `${members} members`);
  });
});

/** Optional members that are records; null does not count as absent in them. */
const RECORDS = ['recognition_policy', 'offer', 'counter', 'original_offer'];

// Access is declared once, with the calls: routes and the authority both use it.

const EDGE_FILES = join(PROJECT_PATH, 'src/edge');

test('a handler whose call declares no access prevents the start', () => {
  const unstated = { ...HANDLERS, unstated: () => null } as unknown as Handlers;
  assert.throws(() => admitCalls(unstated), /unstated states no access/);
});

test('every call has a handler, and every handler a call', () => {
  assert.deepEqual(Object.keys(HANDLERS).sort(), Object.keys(CALLS).sort());
});

test('a route has the access of the call it makes', () => {
  for (const route of ROUTES) {
    if (route.call === null) assert.match(route.access, /^(public|internal)$/, route.path);
    else if (route.path === '/nodes') assert.equal(route.access, 'public-or-operator');
    else assert.equal(route.access, CALLS[route.call].access, route.path);
  }
});

test('every call of a node or an operator has one route', () => {
  const guarded = (Object.keys(CALLS) as CallName[]).filter(
    (name) => !['public', 'internal'].includes(CALLS[name].access),
  );
  const reached = ROUTES.map(({ call }) => call).filter((call) => call !== null);
  for (const name of guarded) {
    if (name === 'openRoster') continue; // GET /nodes makes this call instead of `countNodes`.
    assert.equal(reached.filter((call) => call === name).length, 1, name);
  }
});

/** Calls that follow one that authenticated the operator; `openRoster` is the one that authenticates. */
const BEHIND_AN_ADMITTED_CALL: ReadonlySet<string> = new Set([
  'openRoster',
  'readRoster',
  'closeRoster',
]);

test('no route makes a guarded call other than its own', () => {
  const sources = readdirSync(EDGE_FILES, { encoding: 'utf8', recursive: true })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => readFileSync(join(EDGE_FILES, file), 'utf8'));
  const calls = sources.flatMap((text) => [...text.matchAll(/edge\.call\('(\w+)'/g)]);
  const names = new Set(calls.map(([, name = '']) => name as CallName));
  const stood = new Set(ROUTES.map(({ call }) => call));
  for (const name of names) {
    const { access } = CALLS[name];
    const isOpen = access === 'public' || BEHIND_AN_ADMITTED_CALL.has(name);
    assert.ok(isOpen || stood.has(name), `${name} has no route of its own`);
  }
});
