import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parseJson } from '../src/base/json/parse.ts';
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
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { MINUTE, SECOND } from './support/clock.ts';
import { makeNetworkFolder } from './support/folders.ts';
import { respelled, timestampSpellings, WRONG_TIMESTAMPS } from './support/hostile.ts';
import { PROJECT } from './support/project.ts';
import {
  auditEvents,
  freshNonce,
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
import { sharedAuthority } from './support/shared-authority.ts';
import { loadAll } from './support/stored.ts';
import { openStoreOf } from './support/test-stores.ts';

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

for (const vector of readVectors()) {
  const { id, input, expected } = vector;
  const { signature_b64: second, legacy_signature_b64: first } = expected;
  const bindsNothing = input.method !== 'GET' && Object.keys(input.body).length === 0;

  test(`vector ${id}: version 2 signs the text that other implementations sign, and binds all of the request`, () => {
    const body = canonicalJson(input.body);
    const text = operatorPayload(headersOf(vector, ''), requestOf(vector), body, input.audience);
    assert.equal(text, expected.payload);
    for (const acceptV1 of [true, false])
      assert.equal(judge(vector, second, {}, acceptV1), 'valid');
    for (const change of [
      { method: 'DELETE' },
      { path: `${input.path}/` },
      { query: { ...input.query, extra: [''] } },
      { body: { ...input.body, extra: null } },
    ]) {
      assert.equal(judge(vector, second, change), 'invalid_signature');
    }
  });

  test(`vector ${id}: version 1 covers only the body, and counts where it is accepted`, () => {
    assert.equal(judge(vector, first, {}), bindsNothing ? 'v1_unbound' : 'valid');
    assert.equal(judge(vector, first, {}, false), 'invalid_signature');
    for (const change of [
      { method: 'DELETE' },
      { path: `${input.path}/` },
      { query: { ...input.query, extra: [''] } },
    ]) {
      const { method, body } = { ...requestOf(vector), ...change };
      const isBound = method === 'GET' || Object.keys(body).length > 0;
      assert.equal(judge(vector, first, change), isBound ? 'valid' : 'v1_unbound');
    }
    const body = { ...input.body, extra: null };
    assert.equal(judge(vector, first, { body }), 'invalid_signature');
  });
}

for (const [setting, version, expected] of [
  ['accept', 2, '200'],
  ['accept', 1, '200'],
  ['refuse', 2, '200'],
  ['refuse', 1, FAILED],
] as const) {
  test(`MESH_ADMIN_SIGNATURE_V1=${setting}: a version ${version} signature gives ${expected}`, async () => {
    await using na = await startTestAuthority({
      environment: { MESH_ADMIN_SIGNATURE_V1: setting },
    });
    assert.equal(outcome(await operate(na, '/admin/invite', TERMS, { version })), expected);
    assert.equal(outcome(await operate(na, '/nodes', {}, { version, method: 'GET' })), expected);
    if (expected !== '200') assert.deepEqual(failureReasons(na), twice('invalid_signature'));
  });
}

test('a network created by init refuses version 1, until the environment accepts it', async () => {
  await using na = await startTestAuthority();
  const refused = await operate(na, '/admin/invite', TERMS, { version: 1 });
  assert.equal(outcome(refused), FAILED);
  await na.stop();
  await using accepting = await startTestAuthority({
    dataDir: na.dataDir,
    clock: na.clock,
    environment: ACCEPT_V1,
  });
  assert.equal(outcome(await operate(accepting, '/admin/invite', TERMS, { version: 1 })), '200');
});

test('a network whose configuration says nothing about version 1 refuses it, until the environment accepts it', async () => {
  const { folder } = makeNetworkFolder();
  const path = join(folder, 'mesh-na.json');
  const { admin_signature_v1, ...older } = JSON.parse(readFileSync(path, 'utf8'));
  assert.equal(admin_signature_v1, 'refuse');
  writeFileSync(path, JSON.stringify(older));
  await using na = await startTestAuthority({ dataDir: folder });
  const refused = await operate(na, '/admin/invite', TERMS, { version: 1 });
  assert.equal(outcome(refused), FAILED);
  assert.equal(outcome(await operate(na, '/admin/invite', TERMS)), '200');
  await na.stop();
  const { clock } = na;
  await using accepting = await startTestAuthority({
    dataDir: folder,
    clock,
    environment: ACCEPT_V1,
  });
  assert.equal(outcome(await operate(accepting, '/admin/invite', TERMS, { version: 1 })), '200');
});

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

test('each use of a version 1 signature is logged and counted', async () => {
  await using na = await startTestAuthority({ environment: ACCEPT_V1 });
  await operate(na, '/admin/invite', TERMS, { version: 1 });
  await operate(na, '/nodes', {}, { version: 1, method: 'GET' });
  await operate(na, '/admin/invite', TERMS, { version: 2 });
  assert.deepEqual(
    auditEvents(na).filter(({ type }) => type === 'operator_signature_v1'),
    ['/admin/invite', '/nodes'].map((scope) => ({
      type: 'operator_signature_v1',
      details: { key_id: 'ops-privileged', scope },
    })),
  );
  const { text } = await send(na, 'GET', '/metrics');
  assert.match(text, /^mesh_na_operator_signature_v1_total 2$/m);
});

/** Each fault of a request by its name, with the reason that is audited. */
const FAULTS: readonly (readonly [string, string, OperatorCall | (() => OperatorCall)])[] = [
  ...HEADERS.map((name) => [`without ${name}`, 'missing_headers', without(name)] as const),
  ['with none of the headers', 'missing_headers', { alter: dropAll }],
  ...HEADERS.map(
    (name) => [`with a ${name} of 257 characters`, 'oversized_headers', filled(name, 257)] as const,
  ),
  ['under a key id nobody has', 'unknown_key', replaced('X-Admin-Key-Id', 'nobody')],
  ['under a key id of 256 characters', 'unknown_key', filled('X-Admin-Key-Id', 256)],
  ['under a key id in another case', 'unknown_key', replaced('X-Admin-Key-Id', 'OPS-PRIVILEGED')],
  ['under the key id __proto__', 'unknown_key', replaced('X-Admin-Key-Id', '__proto__')],
  ...WRONG_TIMESTAMPS.map(
    (timestamp) => [`signed at ${timestamp}`, 'invalid_timestamp', { timestamp }] as const,
  ),
  ['signed in the year 2000', 'stale_timestamp', { timestamp: '2000-01-01T00:00:00Z' }],
  ['with the signature of another key', 'invalid_signature', signedByAnother],
  ['with a signature that is no base64', 'invalid_signature', replaced(HEADERS[3], '!!')],
  ['with a signature of 63 bytes', 'invalid_signature', replaced(HEADERS[3], zeros(63))],
  ['with a signature of 64 zero bytes', 'invalid_signature', replaced(HEADERS[3], zeros(64))],
  ['with its signature in a second spelling', 'invalid_signature', { alter: respellSignature }],
  ['with another nonce than it signed', 'invalid_signature', replaced('X-Admin-Nonce', 'other')],
];

test('an operator request with a fault is 401, and audited with its reason', async () => {
  const na = await shared();
  for (const [fault, reason, call] of FAULTS) {
    const given = typeof call === 'function' ? call() : call;
    const request = operatorRequest(na, '/admin/invite', {}, given);
    const before = auditEvents(na).length;
    const answer = await sendSigned(na, request);
    assert.equal(outcome(answer), FAILED, fault);
    assert.deepEqual(answer.body.error.details, {});
    const details = {
      key_id: (request.init.headers['X-Admin-Key-Id'] ?? '').slice(0, 256),
      scope: '/admin/invite',
      remote_addr: '127.0.0.1',
      reason,
    };
    const events = auditEvents(na).slice(before);
    assert.deepEqual(events, [{ type: 'admin_auth_failed', details }], fault);
  }
});

test('an empty header counts as missing', async () => {
  const na = await shared();
  for (const name of HEADERS) {
    const { init } = operatorRequest(na, '/admin/invite', {}, replaced(name, ''));
    const sent = { headers: init.headers, pieces: ['{}'] };
    await assertFailed(na, sendRaw(na, 'POST', '/admin/invite', sent), 'missing_headers');
  }
});

test('a nonce of 256 characters is accepted', async () => {
  const na = await shared();
  const answer = await operate(na, '/admin/invite', {}, { nonce: 'n'.repeat(256) });
  assert.equal(outcome(answer), '200');
});

test('an unknown and a revoked key get the same answer, and differ only in the audit log', async () => {
  await using na = await startTestAuthority();
  const revoke = '/admin/operator-keys/ops-standard/revoke';
  await operate(na, revoke, { reason: 'key_compromise' });
  const headers = { 'X-Request-ID': 'same-id' };
  const answers = [];
  for (const keyId of ['nobody', 'ops-standard']) {
    const operator = { keyId, key: na.standard.key };
    const { method, path, init } = operatorRequest(na, '/admin/invite', {}, { operator });
    const both = { ...init.headers, ...headers };
    answers.push(await send(na, method, path, { ...init, headers: both }));
  }
  for (const { status, body } of answers) {
    assert.equal(status, 401);
    assert.deepEqual(body.error, {
      code: 'admin_auth_failed',
      message: 'Unknown admin key',
      details: {},
      request_id: 'same-id',
    });
  }
  assert.deepEqual(failureReasons(na), ['unknown_key', 'revoked_key']);
});

test('a request may be 300 s old or ahead, and no more', async () => {
  const na = await shared();
  const sendAged = (age: number) =>
    operate(na, '/admin/invite', {}, { timestamp: formatInstant(na.clock.now() - age) });
  for (const age of [TOLERANCE, -TOLERANCE]) assert.equal(outcome(await sendAged(age)), '200');
  for (const beyond of [1, 0.001]) {
    await assertFailed(na, sendAged(TOLERANCE + beyond), 'stale_timestamp');
    await assertFailed(na, sendAged(-TOLERANCE - beyond), 'stale_timestamp');
  }
});

test('a timestamp is read in every spelling, and signed as it was sent', async () => {
  const na = await shared();
  for (const [spelling, timestamp] of timestampSpellings(na.clock.now())) {
    const answer = await operate(na, '/admin/invite', {}, { timestamp });
    assert.equal(outcome(answer), '200', spelling);
  }
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

test('the checks come in order: of several faults the first is audited', async () => {
  await using na = await startTestAuthority();
  const spent = freshNonce();
  assert.equal(outcome(await operate(na, '/admin/invite', {}, { nonce: spent })), '200');
  const stale = formatInstant(na.clock.now() - TOLERANCE - 1);
  const bad = { 'X-Admin-Signature': zeros(64) };
  const oversized = { 'X-Admin-Signature': 'x'.repeat(257) };

  for (const [faults, reason, call] of [
    ['missing and oversized headers', 'missing_headers', put({ ...oversized, ...drop(2) })],
    ['a missing header, an unknown key', 'missing_headers', put({ ...unknown(), ...drop(2) })],
    ['oversized, an unknown key', 'oversized_headers', put({ ...oversized, ...unknown() })],
    ['an unknown key, no timestamp', 'unknown_key', { ...put(unknown()), timestamp: 'never' }],
    ['an unknown key, stale', 'unknown_key', { ...put(unknown()), timestamp: stale }],
    ['an unknown key, wrongly signed', 'unknown_key', put({ ...unknown(), ...bad })],
    ['no timestamp, replayed', 'invalid_timestamp', { timestamp: 'never', nonce: spent }],
    ['no timestamp, wrongly signed', 'invalid_timestamp', { ...put(bad), timestamp: 'never' }],
    ['stale, replayed', 'stale_timestamp', { timestamp: stale, nonce: spent }],
    ['stale, wrongly signed', 'stale_timestamp', { ...put(bad), timestamp: stale }],
    ['replayed, wrongly signed', 'nonce_replay', { ...put(bad), nonce: spent }],
  ] as [string, string, OperatorCall][]) {
    await assertFailed(na, operate(na, '/admin/invite', {}, call), reason, faults);
  }
  // A wrong signature comes before the tier, and the tier before the body.
  const { standard: operator } = na;
  const wrong = operate(na, '/admin/revoke', {}, { operator, ...put(bad) });
  await assertFailed(na, wrong, 'invalid_signature');
  const untiered = await operate(na, '/admin/revoke', {}, { operator });
  assert.equal(outcome(untiered), '403 insufficient_operator_tier');

  await operate(na, '/admin/operator-keys/ops-standard/revoke');
  for (const [faults, reason, call] of [
    ['a missing header', 'missing_headers', put(drop(2))],
    ['no timestamp', 'revoked_key', { timestamp: 'never' }],
    ['stale', 'revoked_key', { timestamp: stale }],
    ['wrongly signed', 'revoked_key', put(bad)],
  ] as [string, string, OperatorCall][]) {
    const answer = operate(na, '/admin/invite', {}, { operator, ...call });
    await assertFailed(na, answer, reason, faults);
  }
});

test('a body that cannot be read is refused before any header is read', async () => {
  await using na = await startTestAuthority({ environment: { MESH_MAX_REQUEST_BYTES: '2048' } });
  for (const [body, expected] of [
    ['{', '400 invalid_json'],
    ['[]', '400 invalid_json_object'],
    ['"text"', '400 invalid_json_object'],
    ['null', '400 invalid_json_object'],
    [' '.repeat(3000), '413 request_entity_too_large'],
  ] as const) {
    assert.equal(outcome(await send(na, 'POST', '/admin/invite', { body })), expected);
  }
  assert.deepEqual(auditEvents(na), []);
});

test('missing fields are 400 only after authentication', async () => {
  const na = await shared();
  const unsigned = await send(na, 'POST', '/admin/revoke', { body: '{}' });
  assert.equal(outcome(unsigned), FAILED);
  assert.equal(outcome(await operate(na, '/admin/revoke')), '400 missing_cert_id');
});

test('a failed signature does not spend the nonce', async () => {
  const na = await shared();
  const nonce = freshNonce();
  const wrong = { ...signedByAnother(), nonce };
  assert.equal(outcome(await operate(na, '/admin/invite', {}, wrong)), FAILED);
  assert.equal(outcome(await operate(na, '/admin/invite', {}, { nonce })), '200');
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

test('the nonce of a revoked key is not spent', async () => {
  await using na = await startTestAuthority();
  await operate(na, '/admin/operator-keys/ops-standard/revoke');
  await na.stop();
  const before = await storedNonces(na);
  await using again = await na.restart();
  const request = operatorRequest(again, '/admin/invite', {}, { operator: na.standard });
  await sendSigned(again, request);
  await sendSigned(again, request);
  assert.deepEqual(failureReasons(again), twice('revoked_key'));
  await again.stop();
  assert.deepEqual(await storedNonces(again), before);
});

test('two operators may use the same nonce', async () => {
  const na = await shared();
  for (const operator of [na.standard, na.privileged]) {
    const answer = await operate(na, '/admin/invite', {}, { operator, nonce: 'shared' });
    assert.equal(outcome(answer), '200');
  }
});

test('of 20 concurrent copies of one signed request exactly one is accepted', async () => {
  await using na = await startTestAuthority();
  const request = operatorRequest(na, '/admin/invite');
  const answers = await Promise.all(Array.from({ length: 20 }, () => sendSigned(na, request)));
  assert.equal(answers.filter(({ status }) => status === 200).length, 1);
  assert.deepEqual(new Set(failureReasons(na)), new Set(['nonce_replay']));
});

test('a version 1 request captured on one route is refused on every other', async () => {
  const na = await accepting();
  const { init } = operatorRequest(na, '/admin/invite', { cert_id: 'c' }, { version: 1 });
  assert.equal(outcome(await send(na, 'POST', '/admin/invite', init)), '200');
  await assertFailed(na, send(na, 'POST', '/admin/revoke', init), 'nonce_replay');
});

test('a replay is refused after a restart', async () => {
  await using na = await startTestAuthority();
  const request = operatorRequest(na, '/admin/invite');
  assert.equal(outcome(await sendSigned(na, request)), '200');
  await using again = await na.restart();
  assert.equal(outcome(await sendSigned(again, request)), FAILED);
  assert.deepEqual(failureReasons(again), ['nonce_replay']);
});

for (const restarts of [false, true]) {
  const kind = restarts ? ' and a restart' : '';
  test(`a request signed 300 s ahead cannot be replayed 600 s later, after a flush${kind}`, async () => {
    await using na = await startTestAuthority();
    const timestamp = formatInstant(na.clock.now() + TOLERANCE);
    const request = operatorRequest(na, '/admin/invite', {}, { timestamp });
    assert.equal(outcome(await sendSigned(na, request)), '200');
    na.clock.advance(2 * TOLERANCE);
    await na.flush();
    await using later = restarts ? await na.restart() : na;
    assert.equal(outcome(await sendSigned(later, request)), FAILED);
    assert.deepEqual(failureReasons(later), ['nonce_replay']);
  });
}

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

test('an empty body is signed as {}', async () => {
  const na = await shared();
  const { init } = operatorRequest(na, '/admin/invite');
  const answer = await send(na, 'POST', '/admin/invite', { headers: init.headers });
  assert.equal(outcome(answer), '200');
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

test('a key of any tier satisfies the standard routes', async () => {
  const na = await shared();
  for (const operator of [na.standard, na.privileged]) {
    assert.equal(outcome(await operate(na, '/admin/invite', {}, { operator })), '200');
    assert.equal(outcome(await operate(na, '/nodes', {}, { operator, method: 'GET' })), '200');
  }
});

test('GET /nodes without operator headers returns only the count', async () => {
  await using na = await startTestAuthority();
  await joinedNode(na);
  assert.deepEqual((await get(na, '/nodes')).body, { count: 1 });
});

test('GET /nodes with operator headers returns the roster', async () => {
  await using na = await startTestAuthority();
  const node = await joinedNode(na, { roles: ['role:anchor'], max_validity_hours: 2 });
  const joinedAt = na.clock.now();
  na.clock.advance(SECOND);
  await heartbeat(na, node);
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

test('GET /nodes with any operator header, or with wrong ones, is 401, never the public form', async () => {
  const na = await shared();
  for (const name of HEADERS) {
    for (const value of ['x', '']) {
      const alone = sendRaw(na, 'GET', '/nodes', { headers: { [name]: value } });
      await assertFailed(na, alone, 'missing_headers', name);
    }
  }
  for (const [reason, call] of [
    ['unknown_key', replaced('X-Admin-Key-Id', 'nobody')],
    ['stale_timestamp', { timestamp: '2000-01-01T00:00:00Z' }],
    ['invalid_signature', signedByAnother()],
  ] as const) {
    const answer = await assertFailed(
      na,
      operate(na, '/nodes', {}, { ...call, method: 'GET' }),
      reason,
    );
    assert.equal(answer.body.count, undefined);
  }
});

test('GET /nodes refuses a replayed roster request', async () => {
  const na = await shared();
  const request = operatorRequest(na, '/nodes', {}, { method: 'GET' });
  assert.equal(outcome(await sendSigned(na, request)), '200');
  await assertFailed(na, sendSigned(na, request), 'nonce_replay');
});

test('operator headers on a public route are ignored', async () => {
  await using na = await startTestAuthority();
  const answer = await send(na, 'GET', '/genesis', { headers: { 'X-Admin-Key-Id': 'nobody' } });
  assert.equal(outcome(answer), '200');
  assert.deepEqual(auditEvents(na), []);
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

function without(name: string): OperatorCall {
  return put({ [name]: undefined });
}

function replaced(name = '', value = ''): OperatorCall {
  return put({ [name]: value });
}

function filled(name: string, length: number): OperatorCall {
  return replaced(name, 'x'.repeat(length));
}

function drop(index: number): Record<string, undefined> {
  return { [HEADERS[index] ?? '']: undefined };
}

function unknown(): Record<string, string> {
  return { 'X-Admin-Key-Id': 'nobody' };
}

function dropAll(headers: Record<string, string>): void {
  for (const name of HEADERS) delete headers[name];
}

function respellSignature(headers: Record<string, string>): void {
  headers['X-Admin-Signature'] = respelled(headers['X-Admin-Signature'] ?? '');
}

function signedByAnother(): OperatorCall {
  return { operator: { keyId: 'ops-privileged', key: newKey() } };
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

function readVectors(): Vector[] {
  const source = readFileSync(new URL('test/vectors/admin_auth.json', PROJECT), 'utf8');
  return (parseJson(source) as unknown as { vectors: Vector[] }).vectors;
}

function headersOf({ input }: Vector, signature: string): OperatorHeaders {
  return { keyId: input.key_id, timestamp: input.timestamp, nonce: input.nonce, signature };
}

function requestOf({ input }: Vector): SignedRequest {
  const { method, path, query, body } = input;
  return { method, path, query, body };
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
