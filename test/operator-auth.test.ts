/** Operator signatures: their versions, what each binds, the keys and tiers behind them, and the roster. */
import assert from 'node:assert/strict';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { JsonFloat, type JsonObject } from '../src/base/json/value.ts';
import { canonicalJson } from '../src/base/json/write.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import {
  judgeOperatorHeaders,
  judgeSignature,
  type OperatorHeaders,
  operatorPayload,
} from '../src/edge/auth/operator.ts';
import type { SignedRequest } from '../src/edge/auth/signed-request.ts';
import { sharedAuthority, startTestAuthority, type TestAuthority } from './support/authority.ts';
import { MINUTE, SECOND } from './support/clock.ts';
import { makeNetworkFolder } from './support/folders.ts';
import {
  auditEvents,
  get,
  heartbeat,
  joinedNode,
  newKey,
  type OperatorCall,
  operate,
  operatorRequest,
  outcome,
  type Received,
  send,
  sendRaw,
  sendSigned,
} from './support/requests.ts';
import { loadAll } from './support/stored.ts';
import { openStoreOf } from './support/test-stores.ts';
import { readVectors } from './support/vectors.ts';

const HEADERS = ['X-Admin-Key-Id', 'X-Admin-Timestamp', 'X-Admin-Nonce', 'X-Admin-Signature'];
const TOLERANCE = 5 * MINUTE;
/** A body that version 1 can bind. */
const TERMS = { max_validity_hours: 24 };
const ACCEPT_V1 = { MESH_ADMIN_SIGNATURE_V1: 'accept' };
const FAILED = '401 admin_auth_failed';

/** For tests that need no state of their own. */
const shared = sharedAuthority();
const accepting = sharedAuthority({ environment: ACCEPT_V1 });

interface Vector {
  readonly id: string;
  readonly input: {
    readonly key_id: string;
    readonly timestamp: string;
    readonly nonce: string;
    readonly method: string;
    readonly path: string;
    readonly query: SignedRequest['query'];
    readonly audience: string;
    readonly body: JsonObject;
    readonly public_key_b64: string;
  };
  readonly expected: {
    readonly payload: string;
    readonly signature_b64: string;
    readonly legacy_signature_b64: string;
  };
}

const VECTORS = readVectors<Vector[]>('admin_auth.json');

test('vectors: version 2 signs the text that other implementations sign, and binds all of the request', () => {
  for (const vector of VECTORS) {
    const { id, input, expected } = vector;
    const second = expected.signature_b64;
    const body = canonicalJson(input.body);
    const text = operatorPayload(headersOf(vector, ''), requestOf(vector), body, input.audience);
    assert.equal(text, expected.payload, id);
    for (const acceptV1 of [true, false]) {
      assert.equal(judge(vector, second, {}, acceptV1), 'valid', id);
    }
    for (const change of changesOf(vector)) {
      assert.equal(judge(vector, second, change), 'invalid_signature', id);
    }
  }
});

test('vectors: version 1 covers only the body, and counts where it is accepted', () => {
  for (const vector of VECTORS) {
    const first = vector.expected.legacy_signature_b64;
    assert.equal(judge(vector, first, {}, false), 'invalid_signature');
    for (const change of [{}, ...changesOf(vector)]) {
      const { method, body } = { ...requestOf(vector), ...change };
      const isBound = method === 'GET' || Object.keys(body).length > 0;
      const expected = isBound ? 'valid' : 'v1_unbound';
      const isCovered = !('body' in change);
      assert.equal(judge(vector, first, change), isCovered ? expected : 'invalid_signature');
    }
  }
});

for (const configured of ['refuse', undefined]) {
  test(`version 1 is refused where the configuration says ${configured ?? 'nothing'}, until the environment accepts it`, async () => {
    const { folder } = makeNetworkFolder();
    const path = join(folder, 'mesh-na.json');
    const { admin_signature_v1, ...older } = JSON.parse(readFileSync(path, 'utf8'));
    assert.equal(admin_signature_v1, 'refuse', 'as init writes it');
    if (configured === undefined) writeFileSync(path, JSON.stringify(older));
    for (const [environment, expected] of [
      [{}, FAILED],
      [{ MESH_ADMIN_SIGNATURE_V1: 'refuse' }, FAILED],
      [ACCEPT_V1, '200'],
    ] as const) {
      await using na = await startTestAuthority({ dataDir: folder, environment });
      assert.equal(outcome(await operate(na, '/admin/invite', TERMS)), '200');
      for (const [path, method] of [
        ['/admin/invite', 'POST'],
        ['/nodes', 'GET'],
      ] as const) {
        const answer = await operate(na, path, TERMS, { version: 1, method });
        assert.equal(outcome(answer), expected);
      }
      const isRefused = expected === FAILED;
      assert.deepEqual(failureReasons(na), isRefused ? twice('invalid_signature') : []);
      assert.deepEqual(
        auditEvents(na).filter(({ type }) => type === 'operator_signature_v1'),
        (isRefused ? [] : ['/admin/invite', '/nodes']).map((scope) => ({
          type: 'operator_signature_v1',
          details: { key_id: 'ops-privileged', scope },
        })),
      );
      const { text } = await get(na, '/metrics');
      const uses = /^mesh_na_operator_signature_v1_total (\d+)$/m.exec(text)?.[1];
      assert.equal(uses, isRefused ? '0' : '2');
    }
    rmSync(folder, { recursive: true, force: true });
  });
}

test('a version 1 signature captured from a GET is not a valid command', async () => {
  const na = await accepting();
  const captured = operatorRequest(na, '/nodes', {}, { version: 1, method: 'GET' });
  const { headers } = captured.init;
  const paths = ['/admin/policy', '/admin/operator-keys/ops-standard/revoke', '/admin/invite'];
  for (const path of paths) {
    for (const body of [{}, { body: '' }, { body: '{}' }]) {
      await assertFailed(na, send(na, 'POST', path, { headers, ...body }), 'v1_unbound');
    }
  }
  assert.equal(outcome(await sendSigned(na, captured)), '200');
});

test('of the faults of headers and keys the first is audited', async () => {
  const na = await shared();
  const stale = formatInstant(na.clock.now() - TOLERANCE - 1);
  const bad = { 'X-Admin-Signature': zeros(64) };
  const oversized = { 'X-Admin-Signature': 'x'.repeat(257) };
  const none = Object.fromEntries(HEADERS.map((name) => [name, undefined]));
  const nonceless = { 'X-Admin-Nonce': undefined };
  for (const [faults, reason, call] of [
    ['none of the headers', 'missing_headers', put(none)],
    ['no key id', 'missing_headers', put(keyId(undefined))],
    ['an empty key id', 'missing_headers', put(keyId(''))],
    ...HEADERS.map((name) => {
      const long = put({ [name]: 'x'.repeat(257) });
      return [`a ${name} of 257 characters`, 'oversized_headers', long] as const;
    }),
    ['a key id nobody has', 'unknown_key', put(keyId('nobody'))],
    ['a key id of 256 characters', 'unknown_key', put(keyId('x'.repeat(256)))],
    ['a key id in another case', 'unknown_key', put(keyId('OPS-PRIVILEGED'))],
    ['the key id __proto__', 'unknown_key', put(keyId('__proto__'))],
    ['missing and oversized headers', 'missing_headers', put({ ...oversized, ...nonceless })],
    ['a missing header, an unknown key', 'missing_headers', put({ ...keyId('x'), ...nonceless })],
    ['oversized, an unknown key', 'oversized_headers', put({ ...oversized, ...keyId('x') })],
    ['an unknown key, no timestamp', 'unknown_key', { ...put(keyId('x')), timestamp: 'never' }],
    ['an unknown key, stale', 'unknown_key', { ...put(keyId('x')), timestamp: stale }],
    ['an unknown key, wrongly signed', 'unknown_key', put({ ...keyId('x'), ...bad })],
  ] as [string, string, OperatorCall][]) {
    const request = operatorRequest(na, '/admin/invite', {}, call);
    await assertFailed(na, sendSigned(na, request), reason, faults);
    const shown = auditEvents(na).at(-1)?.details.key_id;
    assert.equal(shown, (request.init.headers['X-Admin-Key-Id'] ?? '').slice(0, 256));
  }
  // A wrong signature comes before the tier, and the tier before the body.
  const { standard: operator } = na;
  const wrong = operate(na, '/admin/revoke', {}, { operator, ...put(bad) });
  await assertFailed(na, wrong, 'invalid_signature');
  const untiered = await operate(na, '/admin/revoke', {}, { operator });
  assert.equal(outcome(untiered), '403 insufficient_operator_tier');
});

test('a revoked key gets the answer of an unknown one, which only the audit log distinguishes from it', async () => {
  await using na = await startTestAuthority();
  await operate(na, '/admin/operator-keys/ops-standard/revoke', { reason: 'key_compromise' });
  const stale = formatInstant(na.clock.now() - TOLERANCE - 1);
  for (const [faults, reason, call] of [
    ['a missing header', 'missing_headers', put({ 'X-Admin-Nonce': undefined })],
    ['no timestamp', 'revoked_key', { timestamp: 'never' }],
    ['stale', 'revoked_key', { timestamp: stale }],
    ['wrongly signed', 'revoked_key', put({ 'X-Admin-Signature': zeros(64) })],
  ] as [string, string, OperatorCall][]) {
    const answer = operate(na, '/admin/invite', {}, { operator: na.standard, ...call });
    await assertFailed(na, answer, reason, faults);
  }
  const nonces = await na.stop().then(() => storedNonces(na));
  await using again = await na.restart();
  for (const keyId of ['nobody', 'ops-standard']) {
    const operator = { keyId, key: na.standard.key };
    const { method, path, init } = operatorRequest(again, '/admin/invite', {}, { operator });
    const headers = { ...init.headers, 'X-Request-ID': 'same-id' };
    for (const answer of [
      await send(again, method, path, { ...init, headers }),
      await send(again, method, path, { ...init, headers }),
    ]) {
      assert.equal(answer.status, 401);
      assert.deepEqual(answer.body.error, {
        code: 'admin_auth_failed',
        message: 'Unknown admin key',
        details: {},
        request_id: 'same-id',
      });
    }
  }
  assert.deepEqual(failureReasons(again), [...twice('unknown_key'), ...twice('revoked_key')]);
  await again.stop();
  assert.deepEqual(await storedNonces(again), nonces, 'no nonce is spent');
});

test('MESH_CLOCK_TOLERANCE_SECONDS sets how old or far ahead a request may be', async () => {
  await using na = await startTestAuthority({
    environment: { MESH_CLOCK_TOLERANCE_SECONDS: '10' },
  });
  const aged = (milliseconds: number) =>
    operate(na, '/admin/invite', {}, { timestamp: formatInstant(na.clock.now() - milliseconds) });
  assert.equal(outcome(await aged(10 * SECOND)), '200');
  assert.equal(outcome(await aged(10 * SECOND + 1)), FAILED);
});

test('malformed JSON does not spend the nonce', async () => {
  const na = await shared();
  const { path, init } = operatorRequest(na, '/admin/invite');
  const broken = await send(na, 'POST', path, { ...init, body: '{' });
  assert.equal(outcome(broken), '400 invalid_json');
  assert.equal(outcome(await send(na, 'POST', path, init)), '200');
});

test('an authenticated request spends its nonce whatever the answer, and its second use is audited with it', async () => {
  const na = await shared();
  const revoke = '/admin/operator-keys/ops-standard/revoke';
  for (const [path, body, operator, expected] of [
    ['/admin/invite', {}, 'standard', '200'],
    ['/admin/revoke', {}, 'standard', '403 insufficient_operator_tier'],
    ['/admin/revoke', {}, 'privileged', '400 missing_cert_id'],
    ['/admin/revoke', { cert_id: 'c' }, 'privileged', '404 certificate_not_found'],
    [revoke, { reason: 1 }, 'privileged', '422 request_validation_failed'],
  ] as const) {
    const request = operatorRequest(na, path, body, { operator: na[operator] });
    const nonce = request.init.headers['X-Admin-Nonce'];
    assert.equal(outcome(await sendSigned(na, request)), expected);
    assert.equal(outcome(await sendSigned(na, request)), FAILED);
    assert.deepEqual(auditEvents(na).at(-1), {
      type: 'admin_auth_failed',
      details: {
        key_id: `ops-${operator}`,
        scope: path.replace('ops-standard', '{key_id}'),
        remote_addr: '127.0.0.1',
        reason: 'nonce_replay',
        nonce,
      },
    });
  }
});

test('a version 1 request captured on one route is refused on every other', async () => {
  const na = await accepting();
  const { init } = operatorRequest(na, '/admin/invite', { cert_id: 'c' }, { version: 1 });
  assert.equal(outcome(await send(na, 'POST', '/admin/invite', init)), '200');
  await assertFailed(na, send(na, 'POST', '/admin/revoke', init), 'nonce_replay');
});

test('a version 2 signature binds path and query', async () => {
  const na = await shared();
  for (const [signedPath, sentPath] of [
    ['/admin/invite', '/admin/revoke'],
    ['/admin/invite?a=1', '/admin/invite?a=2'],
    ['/admin/invite?a=1', '/admin/invite'],
    ['/admin/invite', '/admin/invite?a=1'],
    ['/admin/invite?a=1&a=2', '/admin/invite?a=2&a=1'],
    ['/admin/invite?a=', '/admin/invite'],
  ] as const) {
    const { init } = operatorRequest(na, signedPath);
    await assertFailed(na, send(na, 'POST', sentPath, init), 'invalid_signature', signedPath);
    assert.equal(outcome(await send(na, 'POST', signedPath, init)), '200');
  }
});

test('query parameters are signed decoded', async () => {
  const na = await shared();
  for (const path of [
    '/nodes?b=2&a=1',
    '/nodes?a=2&a=1&a=2',
    '/nodes?a=&b',
    '/nodes?a=x+y+%2B',
    '/nodes?caf%C3%A9=%E2%9C%93%20%26%3D',
    '/nodes?__proto__=1',
  ]) {
    assert.equal(outcome(await operate(na, path, {}, { method: 'GET' })), '200', path);
  }
});

test('a version 2 signature for another authority is refused', async () => {
  const na = await shared();
  const request = operatorRequest({ ...na, audience: newKey().publicKey }, '/admin/invite');
  await assertFailed(na, sendSigned(na, request), 'invalid_signature');
});

for (const version of [1, 2] as const) {
  test(`a version ${version} signature binds the body, including its number tokens`, async () => {
    const na = await accepting();
    const signed = { token_expiry_hours: 1, note: 'Zürich ✓' };
    for (const body of ['{"token_expiry_hours":2,"note":"Zürich ✓"}', '{}', '', '{"note":"x"}']) {
      const { init } = operatorRequest(na, '/admin/invite', signed, { version });
      const answer = await send(na, 'POST', '/admin/invite', { ...init, body });
      assert.equal(outcome(answer), FAILED, body);
    }
    const { init } = operatorRequest(na, '/admin/invite', signed, { version });
    const float = '{"token_expiry_hours":1.0,"note":"Zürich ✓"}';
    const asFloat = await send(na, 'POST', '/admin/invite', { ...init, body: float });
    assert.equal(outcome(asFloat), FAILED, float);
    const spaced = '{ "note":"Z\\u00fcrich \\u2713",\n"token_expiry_hours":1 }';
    const reordered = await send(na, 'POST', '/admin/invite', { ...init, body: spaced });
    assert.equal(outcome(reordered), '200', 'the value is signed, not its spelling');
  });
}

test('floats, long integers and unusual names keep their canonical form in the signed text', async () => {
  const na = await shared();
  const body = {
    token_expiry_hours: new JsonFloat(24),
    numbers: [new JsonFloat(1e16), new JsonFloat(1e-7), new JsonFloat(-0), 2n ** 70n],
    '\u{1F600}': 1,
    '\uE000': 2,
    '\u007f': '\u2028',
  };
  assert.equal(outcome(await operate(na, '/admin/invite', body)), '200');
});

test('a standard key on a privileged route is 403, and both tiers are audited', async () => {
  const na = await shared();
  const answer = await operate(na, '/admin/revoke', { cert_id: 'c' }, { operator: na.standard });
  assert.equal(outcome(answer), '403 insufficient_operator_tier');
  assert.match(answer.body.error.message, /\bprivileged\b/);
  assert.deepEqual(auditEvents(na).at(-1), {
    type: 'admin_authz_denied',
    details: {
      key_id: 'ops-standard',
      scope: '/admin/revoke',
      remote_addr: '127.0.0.1',
      holder_tier: 'standard',
      required_tier: 'privileged',
      reason: 'insufficient_operator_tier',
    },
  });
});

test('GET /nodes with operator headers returns the roster, and without any only the count', async () => {
  await using na = await startTestAuthority();
  const node = await joinedNode(na, { roles: ['role:anchor'], max_validity_hours: 2 });
  const joinedAt = na.clock.now();
  na.clock.advance(SECOND);
  await heartbeat(na, node);
  assert.deepEqual((await get(na, '/nodes')).body, { count: 1 });
  const { body } = await operate(na, '/nodes', {}, { operator: na.standard, method: 'GET' });
  assert.deepEqual(body, {
    count: 1,
    nodes: {
      [node.certId]: {
        node_public_key: node.key.publicKey,
        roles: ['role:anchor'],
        status: 'healthy',
        last_heartbeat: formatInstant(na.clock.now()),
        remote_addr: '127.0.0.1',
        expires_at: formatInstant(joinedAt + 120 * MINUTE),
      },
    },
  });
});

test('GET /nodes with any operator header is 401, never the public form', async () => {
  const na = await shared();
  for (const name of HEADERS) {
    for (const value of ['x', '']) {
      const alone = sendRaw(na, 'GET', '/nodes', { headers: { [name]: value } });
      const answer = await assertFailed(na, alone, 'missing_headers', name);
      assert.equal(answer.body.count, undefined);
    }
  }
});

test('operator headers on a public route are ignored', async () => {
  const na = await shared();
  const before = auditEvents(na).length;
  const answer = await send(na, 'GET', '/genesis', { headers: { 'X-Admin-Key-Id': 'nobody' } });
  assert.equal(outcome(answer), '200');
  assert.equal(auditEvents(na).length, before);
});

function failureReasons(na: TestAuthority): unknown[] {
  return auditEvents(na)
    .filter(({ type }) => type === 'admin_auth_failed')
    .map(({ details }) => details.reason);
}

/** Awaits an answer that must be the refusal of a proof, audited once with the reason. */
async function assertFailed(
  na: TestAuthority,
  answer: Promise<Received>,
  reason: string,
  message = reason,
): Promise<Received> {
  const before = failureReasons(na).length;
  const received = await answer;
  assert.equal(outcome(received), FAILED, message);
  assert.deepEqual(failureReasons(na).slice(before), [reason], message);
  return received;
}

function twice(reason: string): string[] {
  return [reason, reason];
}

function put(changes: Readonly<Record<string, string | undefined>>): OperatorCall {
  return {
    alter(headers) {
      for (const [name, value] of Object.entries(changes)) {
        if (value === undefined) delete headers[name];
        else headers[name] = value;
      }
    },
  };
}

function keyId(id: string | undefined): Readonly<Record<string, string | undefined>> {
  return { 'X-Admin-Key-Id': id };
}

function zeros(bytes: number): string {
  return Buffer.alloc(bytes).toString('base64');
}

/** Digests of the nonces that the stopped authority has stored. */
async function storedNonces({ dataDir }: TestAuthority): Promise<string[]> {
  const store = await openStoreOf({ dataDir });
  const { nonces } = await loadAll(store);
  const digests = nonces.map(({ digest }) => digest).sort();
  await store.close();
  return digests;
}

function headersOf({ input }: Vector, signature: string): OperatorHeaders {
  return { keyId: input.key_id, timestamp: input.timestamp, nonce: input.nonce, signature };
}

function requestOf({ input }: Vector): SignedRequest {
  const { method, path, query, body } = input;
  return { method, path, query, body };
}

/** Each changes one of the parts of the request. */
function changesOf({ input }: Vector): readonly Partial<SignedRequest>[] {
  return [
    { method: 'DELETE' },
    { path: `${input.path}/` },
    { query: { ...input.query, extra: [''] } },
    { body: { ...input.body, extra: null } },
  ];
}

function judge(
  vector: Vector,
  signature: string,
  change: Partial<SignedRequest>,
  acceptV1 = true,
): string {
  const { key_id: keyId, public_key_b64: publicKey, audience, timestamp } = vector.input;
  const settings = {
    keys: new Map([[keyId, publicKey]]),
    authorityKeys: { audiences: [audience] },
    toleranceMs: TOLERANCE,
    acceptV1,
  };
  const request = { ...requestOf(vector), ...change };
  const headers = headersOf(vector, signature);
  const { verdict } = judgeOperatorHeaders(headers, settings, Date.parse(timestamp));
  if (verdict !== 'valid') return verdict;
  return judgeSignature(headers, request, settings).verdict;
}
