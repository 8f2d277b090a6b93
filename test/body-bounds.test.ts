/** Size limits of bodies, route by route, and how bodies of unauthenticated senders are handled. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Signer } from '../src/base/crypto/primitives.ts';
import { jsonText } from '../src/base/json/write.ts';
import { ROUTES } from '../src/edge/routes/table.ts';
import { maxBodyBytes, maxBodyValues } from '../src/protocol/route-description.ts';
import { sharedAuthority, startTestAuthority, type TestAuthority } from './support/authority.ts';
import { MINUTE } from './support/clock.ts';
import {
  auditEvents,
  get,
  newKey,
  nodeRequest,
  operate,
  operatorRequest,
  outcome,
  type Received,
  type SignedRequest,
  send,
  sendRaw,
  sendSigned,
  signedByNode,
} from './support/requests.ts';
import { signAgentDescriptor } from './support/signing.ts';
import { eachOf } from './support/trust-protocol.ts';

/** For tests that need no proxy, no settings and no state of their own. */
const shared = sharedAuthority();

const KIB = 1024;
const LARGE = [
  '/admin/authority-keys',
  '/admin/policy',
  '/admin/recognition-treaties/{treaty_id}/follow',
  '/admin/sovereign-revocation-feeds/import',
];

function expectedBound(path: string): number {
  if (path === '/agents') return 64 * KIB;
  if (path.startsWith('/agents/')) return 16 * KIB;
  if (['/join', '/heartbeat', '/renew'].includes(path)) return 16 * KIB;
  if (LARGE.includes(path)) return 2048 * KIB;
  return (path.startsWith('/admin/') ? 256 : 512) * KIB;
}

test('every route that takes a body has a limit, and the limit is documented', async () => {
  const na = await shared();
  const { body: listed } = await get(na, '/swagger.json');
  const inPieces = new Set<number>();
  for (const route of ROUTES.filter(({ method }) => method !== 'GET')) {
    const { method, path } = route;
    const bound = maxBodyBytes(route);
    assert.ok(bound > 0 && bound <= expectedBound(path), `${bound}`);
    const operation = listed.paths[path][method.toLowerCase()];
    assert.equal(operation['x-mesh-max-body-bytes'], bound);
    assert.equal(operation['x-mesh-max-body-values'], maxBodyValues(route));
    if (operation.requestBody !== undefined) {
      assert.match(operation.requestBody.description, new RegExp(`${bound} bytes`));
    }
    const target = path.replace(/\{\w+\}/g, 'nobody');
    const blanks = (bytes: number) => `${' '.repeat(bytes - 2)}{}`;
    const fits = await send(na, method, target, { body: blanks(bound) });
    assert.notEqual(fits.status, 413, outcome(fits));
    const tooLarge = await send(na, method, target, { body: blanks(bound + 1) });
    assert.equal(outcome(tooLarge), '413 request_entity_too_large');
    if (inPieces.has(bound)) continue;
    inPieces.add(bound);
    const headers = { 'Transfer-Encoding': 'chunked' };
    const pieces = [' '.repeat(bound - 1), '{}'];
    const chunked = await sendRaw(na, method, target, { headers, pieces });
    assert.equal(outcome(chunked), '413 request_entity_too_large');
  }
});

test('what is kept of a request does not keep its body in memory', async () => {
  await using na = await startTestAuthority({
    environment: { MESH_RATE_LIMIT_NODE_FAILURES: '60/60', MESH_RATE_LIMIT_AGENTS: 'off' },
  });
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const heap = () => {
    collect();
    collect();
    return process.memoryUsage().heapUsed;
  };
  /** The same request, padded with blanks up to the limit of its route. */
  async function sendPadded({ method, path, init }: SignedRequest): Promise<string> {
    const body = init.body ?? '';
    const blanks = ' '.repeat(expectedBound(path) - body.length);
    return outcome(await send(na, method, path, { ...init, body: `{${blanks}${body.slice(1)}` }));
  }
  async function askAsNode(token: string): Promise<void> {
    const key = newKey();
    const stranger = { signedBy: newKey() };
    const forged = signedByNode(na, '/join', newKey(), { invite_token: token }, stranger);
    assert.equal(await sendPadded(forged), '401 node_auth_failed');
    const joined = await nodeRequest(na, '/join', key, { invite_token: token });
    const { cert_id } = joined.body;
    const status = `healthy, ${cert_id}`;
    const renewed = signedByNode(na, '/renew', key, { cert_id });
    assert.equal(await sendPadded(renewed), '200');
    assert.equal(await sendPadded(signedByNode(na, '/heartbeat', key, { cert_id, status })), '200');
    const agent = {
      agent_id: cert_id,
      network_name: 'alpha',
      capabilities: [`capability:${cert_id}`],
      endpoint: { host: 'agent.example', port: 443 },
    };
    const body = jsonText(signAgentDescriptor(agent, key, na.clock.now()));
    assert.equal(
      await sendPadded({ method: 'POST', path: '/agents', init: { body, headers: {} } }),
      '200',
    );
  }

  const { body } = await operate(na, '/admin/invite', { count: 250 });
  const tokens = body.tokens.map((token: { token_id: string }) => token.token_id) as string[];
  await eachOf(tokens.splice(0, 50), askAsNode);
  const before = heap();
  await eachOf(tokens, askAsNode);
  const bytes = (heap() - before) / tokens.length;
  assert.ok(bytes < 16 * KIB, `${Math.round(bytes)} bytes of heap a node`);
});

test('a public body contains at most 32,768 JSON values, and its description says so', async () => {
  const na = await shared();
  const { body: listed } = await get(na, '/swagger.json');
  // The body, the list and its items all count as values.
  const values = (count: number) => ({ body: `{"unknown":[${Array(count - 2).fill(0)}]}` });
  for (const path of ['/attestations/verify', '/agreements/verify', '/disclosure/prove']) {
    const { requestBody } = listed.paths[path].post;
    assert.match(requestBody.description, /At most 32768 JSON values: .* 400 invalid_json\.$/);
    assert.equal(outcome(await send(na, 'POST', path, values(32_769))), '400 invalid_json');
    assert.match(outcome(await send(na, 'POST', path, values(32_768))), /^400 missing_/);
  }
});

test('MESH_MAX_REQUEST_BYTES lowers every limit above it', async () => {
  const environment = { MESH_MAX_REQUEST_BYTES: '20000' };
  await using na = await startTestAuthority({ environment });
  const statusOf = async (path: string, bytes: number) =>
    (await send(na, 'POST', path, { body: `${' '.repeat(bytes - 2)}{}` })).status;
  assert.equal(await statusOf('/join', 16 * KIB + 1), 413);
  assert.equal(await statusOf('/agents', 20_000), 400);
  assert.equal(await statusOf('/agents', 20_001), 413);
  assert.equal(await statusOf('/admin/policy', 20_001), 413);
});

/** Headers that are enough to show that the request will fail; null stands for no headers. */
const FAILING: readonly (readonly [name: string, value: string] | null)[] = [
  null,
  ['X-Admin-Key-Id', 'nobody'],
  ['X-Admin-Nonce', ''],
  ['X-Admin-Nonce', 'n'.repeat(257)],
  ['X-Admin-Timestamp', '2020-01-01T00:00:00Z'],
  ['X-Admin-Signature', 'AAAA'],
];

function put(headers: Record<string, string>, name: string, value: string): void {
  headers[name] = value;
}

test('with headers that fail, syntax is checked first, but a large body is not parsed', async () => {
  await using na = await startTestAuthority();
  for (const failing of FAILING) {
    const alter = (headers: Record<string, string>) => put(headers, ...(failing ?? ['', '']));
    const ask = (body: string) => {
      const { headers } = operatorRequest(
        na,
        '/admin/policy',
        {},
        { ...(failing && { alter }) },
      ).init;
      return sendRaw(na, 'POST', '/admin/policy', {
        headers: { ...(failing && headers), 'Content-Length': body.length },
        pieces: [body],
      });
    };
    assert.equal(outcome(await ask('{"a":1')), '400 invalid_json', failing?.join());
    assert.equal(outcome(await ask('{"a":1}')), '401 admin_auth_failed', failing?.join());
    assert.equal(outcome(await ask(' '.repeat(256 * KIB))), '400 invalid_json');
    assert.equal(outcome(await ask(' '.repeat(256 * KIB + 1))), '401 admin_auth_failed');
  }
});

const ROUNDS = 5;

test('2 MiB without a valid key cost less than parsing them', async () => {
  await using na = await startTestAuthority({ flags: { threads: '1' } });
  const names = Array.from({ length: 200_000 }, (_, index) => `"${index.toString(36)}":0`);
  const body = `{${names.join(',')}}`;
  const before = process.cpuUsage();
  for (let round = 0; round < ROUNDS; round += 1) {
    const answer = await send(na, 'POST', '/admin/policy', { body });
    assert.equal(outcome(answer), '401 admin_auth_failed');
  }
  const { user, system } = process.cpuUsage(before);
  // Parsing and copying each body would take some 500 ms; sending and receiving it takes some 10 ms.
  const each = (user + system) / 1000 / ROUNDS;
  assert.ok(each < 150, `${each} ms each`);
});

/** A body that is large, but cheap to create in a test, sent in the name of a known key. */
function large(na: TestAuthority, source: string, signer?: Signer): Promise<Received> {
  const note = { note: 'n'.repeat(256 * KIB) };
  const alter = (headers: Record<string, string>) => {
    put(headers, 'X-Forwarded-For', source);
    if (signer !== undefined) put(headers, 'X-Admin-Signature', signer.sign('another text'));
  };
  return sendSigned(na, operatorRequest(na, '/admin/policy', note, { alter }));
}

function small(na: TestAuthority, source: string, path = '/admin/policy/history') {
  const alter = (headers: Record<string, string>) => put(headers, 'X-Forwarded-For', source);
  return sendSigned(na, operatorRequest(na, path, {}, { method: 'GET', alter }));
}

const BEHIND_A_PROXY = {
  flags: { threads: '1' },
  environment: { MESH_PROXY_HOPS: '1' },
};
const REFUSED = '401 admin_auth_failed';
const UNREAD = '429 admin_auth_throttled';

test('six large forged bodies a minute are read, two from one source', async () => {
  await using na = await startTestAuthority(BEHIND_A_PROXY);
  const forger = newKey();
  for (const source of ['192.0.2.1', '192.0.2.2', '192.0.2.3']) {
    assert.equal(outcome(await large(na, source, forger)), REFUSED);
    assert.equal(outcome(await large(na, source, forger)), REFUSED);
    const third = await large(na, source, forger);
    assert.equal(outcome(third), UNREAD);
    assert.equal(third.headers.get('retry-after'), '60');
  }
  const audited = auditEvents(na).length;
  for (let source = 10; source < 40; source += 1) {
    assert.equal(outcome(await large(na, `192.0.2.${source}`, forger)), UNREAD);
  }
  assert.equal(auditEvents(na).length, audited, 'what is not read writes nothing');
  na.clock.advance(MINUTE);
  assert.equal(outcome(await large(na, '192.0.2.1', forger)), REFUSED);
});

test('a large body that cannot be parsed counts as forged', async () => {
  await using na = await startTestAuthority(BEHIND_A_PROXY);
  const request = operatorRequest(na, '/admin/policy');
  const headers = { ...request.init.headers, 'X-Forwarded-For': '192.0.2.1' };
  const body = `{"a":${'1'.repeat(256 * KIB)}`;
  const ask = () => sendSigned(na, { ...request, init: { ...request.init, headers, body } });
  for (const expected of ['400 invalid_json', '400 invalid_json', UNREAD]) {
    assert.equal(outcome(await ask()), expected);
  }
});

test('strangers do not keep an operator who has recently proven the key from sending large bodies', async () => {
  await using na = await startTestAuthority(BEHIND_A_PROXY);
  const forger = newKey();
  const operator = '198.51.100.1';
  for (let source = 1; source <= 6; source += 1) {
    assert.equal(outcome(await large(na, `192.0.2.${source}`, forger)), REFUSED);
  }
  assert.equal(outcome(await large(na, operator)), UNREAD, 'not yet known');
  assert.equal(outcome(await small(na, operator)), '200');
  for (let imports = 0; imports < 20; imports += 1) {
    assert.equal(outcome(await large(na, operator)), '200');
  }
  // Strangers at the operator's address have an allowance, too.
  for (let forged = 0; forged < 6; forged += 1) {
    assert.equal(outcome(await large(na, operator, forger)), REFUSED);
  }
  assert.equal(outcome(await large(na, operator, forger)), UNREAD);
  assert.equal(outcome(await large(na, '192.0.2.1')), UNREAD, 'the proof was of another source');
});

test('a proof counts for ten minutes', async () => {
  await using na = await startTestAuthority(BEHIND_A_PROXY);
  const operator = '198.51.100.1';
  const exhausted = async () => {
    for (let source = 1; source <= 6; source += 1) await large(na, `192.0.2.${source}`, newKey());
  };
  assert.equal(outcome(await small(na, operator)), '200');
  na.clock.advance(10 * MINUTE - 1);
  await exhausted();
  assert.equal(outcome(await large(na, operator)), '200');
  na.clock.advance(10 * MINUTE);
  await exhausted();
  assert.equal(outcome(await large(na, operator)), UNREAD);
});

test('large bodies that verify are not counted, even without an earlier proof', async () => {
  await using na = await startTestAuthority(BEHIND_A_PROXY);
  for (let source = 1; source <= 20; source += 1) {
    assert.equal(outcome(await large(na, `198.51.100.${source}`)), '200');
  }
});

test('an operator signs and sends 2 MiB where that is allowed', async () => {
  await using na = await startTestAuthority();
  const request = operatorRequest(na, '/admin/policy', { note: 'n'.repeat(2048 * KIB - 20) });
  assert.equal(outcome(await sendSigned(na, request)), '200');
  na.clock.advance(MINUTE);
  const forged = operatorRequest(
    na,
    '/admin/policy',
    { note: 'n'.repeat(2048 * KIB - 20) },
    {
      alter: (headers) => put(headers, 'X-Admin-Signature', newKey().sign('another text')),
    },
  );
  assert.equal(outcome(await sendSigned(na, forged)), '401 admin_auth_failed');
});
