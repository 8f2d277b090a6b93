/** The published description as tools use it: a linter, a generator, and each of its examples [core-4-15]. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { Ajv } from 'ajv';
import type { JsonObject } from '../src/base/json/value.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { ROUTES } from '../src/edge/routes/table.ts';
import { API } from '../src/protocol/api/table.ts';
import { REFUSALS } from '../src/protocol/refusals.ts';
import { sharedAuthority, startTestAuthority, type TestAuthority } from './support/authority.ts';
import { PROJECT_PATH } from './support/project.ts';
import {
  freshNonce,
  get,
  newKey,
  operate,
  operatorRequest,
  outcome,
  type Received,
  send,
  sendRaw,
} from './support/requests.ts';
import { inExampleOrder } from './support/routes.ts';
import { signNodeBody } from './support/signing.ts';

interface Operation {
  readonly method: string;
  readonly path: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads members of a description it then asserts on
  readonly described: any;
}

async function readDescription(na: TestAuthority) {
  const { body: document, text } = await get(na, '/swagger.json');
  const operations = Object.entries<object>(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(
      ([method, described]): Operation => ({ method: method.toUpperCase(), path, described }),
    ),
  );
  return { document, text, operations };
}

const run = promisify(execFile);
const modules = join(PROJECT_PATH, 'node_modules');
const tool = (name: string) => join(modules, '.bin', name);

let na: TestAuthority;
let folder: string;
/** File that holds the description. */
let file: string;
// biome-ignore lint/suspicious/noExplicitAny: a test reads members of a description it then asserts on
let document: any;
let operations: readonly Operation[];

before(async () => {
  na = await startTestAuthority();
  const read = await readDescription(na);
  ({ document, operations } = read);
  folder = mkdtempSync(join(tmpdir(), 'mesh-na-openapi-'));
  file = join(folder, 'swagger.json');
  writeFileSync(file, read.text);
  symlinkSync(modules, join(folder, 'node_modules'));
});
after(async () => {
  await na.stop();
  rmSync(folder, { recursive: true, force: true });
});

test('the description differs only in its server address, whatever hostname a client sends', async () => {
  for (const host of ['one.example', 'other.example:8080', 'base-url:']) {
    const { text } = await sendRaw(na, 'GET', '/swagger.json', { headers: { Host: host } });
    const { servers, ...rest } = JSON.parse(text);
    assert.deepEqual(servers, [{ url: `http://${host}` }]);
    const { servers: _, ...expected } = document;
    assert.deepEqual(rest, expected);
  }
});

test('the description is OpenAPI 3.0.3 of version v0.1', () => {
  assert.equal(document.openapi, '3.0.3');
  assert.equal(document.info.version, 'v0.1');
  assert.deepEqual(document.servers, [{ url: na.url }]);
});

test('the description is valid, and the linter finds nothing', async () => {
  const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' };
  const found = await run(tool('redocly'), ['lint', '--config', 'redocly.yaml', file], {
    cwd: PROJECT_PATH,
    env,
  }).then(
    () => '',
    ({ stdout, stderr }: { stdout: string; stderr: string }) => `${stdout}${stderr}`,
  );
  assert.equal(found, '');
});

test('the description and the route table name the same operations', () => {
  assert.deepEqual(
    operations.map(({ method, path }) => `${method} ${path}`).sort(),
    ROUTES.map(({ method, path }) => `${method} ${path}`).sort(),
  );
  const ids = operations.map(({ described }) => String(described.operationId));
  assert.deepEqual(ids.sort(), Object.keys(API).sort());
});

test('every route is described as the table has it', () => {
  for (const route of ROUTES) {
    const name = `${route.method} ${route.path}`;
    const { described } =
      operations.find(({ method, path }) => method === route.method && path === route.path) ?? {};
    assert.ok(described !== undefined, name);
    assert.equal(described.summary, route.summary);
    assert.equal(described['x-mesh-access'], route.access, name);
    assert.equal(described['x-mesh-rate-limit'], route.limit, name);
    assert.equal(typeof described['x-mesh-auth-hint'], 'string', name);
    assert.deepEqual(described.security, securityOf(route.access, route.path), name);
    assert.equal(described.tags.length, 1, name);

    const statuses = Object.keys(described.responses);
    const bodyStatuses = route.method === 'GET' ? [] : ['408', '413'];
    for (const status of ['200', ...ANY_REFUSAL, ...bodyStatuses]) {
      assert.ok(statuses.includes(status), `${status} of ${name}`);
      if (status === '200') continue;
      assert.deepEqual(described.responses[status], { $ref: '#/components/responses/Error' });
    }
    assert.equal(statuses.includes('201'), route.created !== undefined, name);
    for (const refusal of route.refusals) {
      assert.ok(statuses.includes(String(REFUSALS[refusal].status)), `${refusal} of ${name}`);
    }

    const parameters: JsonObject[] = described.parameters ?? [];
    const named = (place: string) =>
      parameters.filter((parameter) => parameter.in === place).map(({ name }) => name);
    const inPath = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
    assert.deepEqual(named('path'), inPath, name);
    assert.deepEqual(named('query'), Object.keys(route.query?.properties ?? {}), name);

    const { requestBody } = described;
    assert.equal(requestBody !== undefined, route.body !== undefined, name);
    if (route.body === undefined) continue;
    const { schema } = requestBody.content['application/json'];
    const { properties, required } = resolved(schema);
    assert.deepEqual(Object.keys(properties), Object.keys(route.body.properties), name);
    assert.equal(requestBody.required, required !== undefined, name);
  }
});

const ANY_REFUSAL = ['400', '401', '403', '404', '409', '422', '429', '500', '503'];

const OPERATOR = {
  OperatorKeyId: [],
  OperatorTimestamp: [],
  OperatorNonce: [],
  OperatorRequestSignature: [],
};

function securityOf(access: string, path: string): unknown[] {
  const session = path === '/heartbeat' ? [{ HeartbeatSession: [] }] : [];
  if (access === 'node') return [{}, { NodeProof: [] }, ...session];
  if (access === 'public-or-operator') return [{}, OPERATOR];
  return access.startsWith('operator') ? [OPERATOR] : [];
}

// biome-ignore lint/suspicious/noExplicitAny: a test reads members of a description it then asserts on
function resolved(schema: any): any {
  if (schema.$ref === undefined) return schema;
  return document.components.schemas[schema.$ref.split('/').at(-1)];
}

test('the security schemes are the headers that clients send', () => {
  const headers = Object.entries<JsonObject>(document.components.securitySchemes).map(
    ([scheme, { type, in: place, name }]) => [scheme, type, place, name],
  );
  assert.deepEqual(headers, [
    ['OperatorKeyId', 'apiKey', 'header', 'X-Admin-Key-Id'],
    ['OperatorTimestamp', 'apiKey', 'header', 'X-Admin-Timestamp'],
    ['OperatorNonce', 'apiKey', 'header', 'X-Admin-Nonce'],
    ['OperatorRequestSignature', 'apiKey', 'header', 'X-Admin-Signature'],
    ['OperatorSignature', 'apiKey', 'header', 'X-Mesh-Operator-Signature'],
    ['NodeProof', 'apiKey', 'header', 'X-Mesh-Node-Proof'],
    ['HeartbeatSession', 'apiKey', 'header', 'X-Mesh-Session'],
  ]);
});

test('nullable members have a type, and whole numbers have bounds', () => {
  const faults: string[] = [];
  const walk = (value: unknown, at: string): void => {
    if (typeof value !== 'object' || value === null) return;
    const { type, nullable, minimum, maximum } = value as JsonObject;
    if (nullable === true && typeof type !== 'string') faults.push(`${at} is nullable`);
    // Sequence numbers of feeds may have any size.
    const isBound = typeof maximum === 'number' || at.endsWith('/sequence');
    if (type === 'integer' && !(typeof minimum === 'number' && isBound)) faults.push(at);
    for (const [name, member] of Object.entries(value)) {
      if (name !== 'example') walk(member, `${at}/${name}`);
    }
  };
  walk(document, '');
  assert.deepEqual(faults, []);
});

/** A program written from the description alone. */
const PROGRAM = `
import { ok } from '@oazapfts/runtime';
import { countNodes, createInvites, defaults, heartbeat, join } from './api.js';

export interface Signing {
  baseUrl: string;
  fetch: typeof fetch;
  signed<Body extends object>(body: Body): Body;
}

export async function enrol({ baseUrl, fetch, signed }: Signing, key: string) {
  Object.assign(defaults, { baseUrl, fetch });
  const invite = await ok(createInvites({ roles: ['role:client'], max_validity_hours: 24 }));
  const certificate = await ok(
    join(signed({ node_public_key: key, invite_token: invite.token_id })),
  );
  const roles: string[] = certificate.roles;
  const { ack } = await ok(
    heartbeat(signed({ node_public_key: key, cert_id: certificate.cert_id })),
  );
  const { nodes = {} } = await ok(countNodes());
  return { ack, roles, row: nodes[certificate.cert_id] };
}
`;

test('a generated client compiles, enrolls a node and reads the roster', async () => {
  await run(tool('oazapfts'), [file, join(folder, 'api.ts')]);
  writeFileSync(join(folder, 'program.ts'), PROGRAM);
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  const options = ['--strict', '--module', 'nodenext', '--target', 'es2023', '--skipLibCheck'];
  await run(tool('tsc'), [...options, '--types', 'node', 'program.ts'], { cwd: folder });
  const { enrol } = await import(pathToFileURL(join(folder, 'program.js')).href);
  const node = newKey();
  const signing = {
    baseUrl: na.url,
    fetch: (url: string, init: RequestInit = {}) => fetch(url, operatorSigned(url, init)),
    signed: (body: JsonObject) =>
      signNodeBody(body, node, { timestamp: formatInstant(na.clock.now()), nonce: freshNonce() }),
  };
  const { ack, roles, row } = await enrol(signing, node.publicKey);
  assert.equal(ack, true);
  assert.deepEqual(roles, ['role:client']);
  assert.equal(row.node_public_key, node.publicKey);
});

function operatorSigned(url: string, init: RequestInit): RequestInit {
  const { pathname } = new URL(url);
  if (!pathname.startsWith('/admin/') && pathname !== '/nodes') return init;
  const body = typeof init.body === 'string' ? JSON.parse(init.body) : {};
  const signed = operatorRequest(na, pathname, body, { method: init.method ?? 'GET' });
  const headers = new Headers(init.headers);
  for (const [name, value] of Object.entries(signed.init.headers)) headers.set(name, value);
  return { ...init, headers };
}

// The example of every route in the published description is answered as the description says [core-4-15].

const shared = sharedAuthority();

/** Makes Ajv interpret `nullable` as OpenAPI 3.0.3 defines it. */
function createAnswerCheck() {
  const ajv = new Ajv({ strict: false, formats: { 'date-time': isInstant } });
  ajv.addSchema(document, 'document');
  return ({ method, path }: Operation, { status, body }: Received): string => {
    const steps = ['paths', path, method.toLowerCase(), 'responses', String(status), 'content'];
    const place = [...steps, 'application/json', 'schema'].map(pointer).join('/');
    const validate = ajv.getSchema(`document#/${place}`);
    if (validate === undefined) return `${status} is not described`;
    return validate(body) ? '' : ajv.errorsText(validate.errors);
  };
}

function isInstant(text: string): boolean {
  return /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/.test(text);
}

function pointer(step: string): string {
  return encodeURIComponent(step.replaceAll('~', '~0').replaceAll('/', '~1'));
}

test('each example is answered as the description says, in the documented form', async () => {
  const problemOf = createAnswerCheck();
  const refusalOf = ({ described }: Operation) => described['x-mesh-example-outcome'];
  const inOrder = inExampleOrder(operations, {
    method: ({ method }) => method,
    isRefused: (operation) => refusalOf(operation) !== undefined,
  });
  for (const operation of inOrder) {
    const refusal = refusalOf(operation);
    const name = `${operation.method} ${operation.path}`;
    const answer = await sendExample(operation);
    if (refusal !== undefined) {
      assert.equal(outcome(answer), refusal, `${name} lacks what it needs`);
      continue;
    }
    assert.match(String(answer.status), /^20[01]$/, `${name}: ${answer.text}`);
    const type = answer.headers.get('content-type')?.split(';')[0] ?? '';
    assert.ok(type in operation.described.responses[answer.status].content, `${name}: ${type}`);
    if (type === 'application/json') assert.equal(problemOf(operation, answer), '', name);
  }
});

test('exactly the reads with an ETag describe it, and the 304 for clients that have it', async () => {
  const reads = operations.filter(
    ({ method, described }) => method === 'GET' && !described['x-mesh-example-outcome'],
  );
  for (const operation of reads) {
    const { path } = operation;
    const { responses } = operation.described;
    const etag = (await sendExample(operation)).headers.get('etag');
    assert.equal(responses[304] !== undefined, etag !== null, path);
    assert.equal(responses[200].headers.ETag !== undefined, etag !== null, path);
    if (etag === null) continue;
    const headers = { 'If-None-Match': etag };
    assert.equal((await send(await shared(), 'GET', path, { headers })).status, 304, path);
  }
});

async function sendExample({ method, path, described }: Operation): Promise<Received> {
  const parameters: { name: string; in: string; example?: string }[] = described.parameters ?? [];
  const authority = await shared();
  let target = path;
  const query = new URLSearchParams();
  for (const { name, in: place, example } of parameters) {
    if (example === undefined) continue;
    if (place === 'query') query.set(name, example);
    else target = target.replace(`{${name}}`, encodeURIComponent(example));
  }
  const url = query.size === 0 ? target : `${target}?${query}`;
  const body = described.requestBody?.content['application/json'].example;
  if (described['x-mesh-access'].startsWith('operator'))
    return operate(authority, url, body, { method });
  return send(authority, method, url, body === undefined ? {} : { body: JSON.stringify(body) });
}
