/** HTTP on several threads: what one thread has acknowledged or counted applies to all of them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import fc from 'fast-check';
import { parseJson } from '../src/base/json/parse.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../src/base/json/value.ts';
import { canonicalJson } from '../src/base/json/write.ts';
import type { CallInput } from '../src/protocol/contract/calls.ts';
import {
  fromCloneable,
  heartbeatIn,
  heartbeatRow,
  toCloneable,
} from '../src/server/threads/crossing.ts';
import { edgeThreadOn } from '../src/server/threads/edge-threads.ts';
import { startTestAuthority, type TestAuthority, type TestOptions } from './support/authority.ts';
import { MINUTE } from './support/clock.ts';
import {
  heartbeat,
  joinedNode,
  newKey,
  nodeRequest,
  operate,
  operatorRequest,
  outcome,
  type Received,
  type SignedRequest,
  sendRaw,
} from './support/requests.ts';

const MANY = 24;

function startThreaded(options: TestOptions = {}): Promise<TestAuthority> {
  return startTestAuthority({ ...options, flags: { threads: '3' } });
}

/** Each request has its own connection, because the kernel distributes connections over the threads. */
function fresh(na: TestAuthority, { method, path, init }: SignedRequest): Promise<Received> {
  const { body, headers } = init;
  return sendRaw(na, method, path, { headers, pieces: body === undefined ? [] : [body] });
}

function times<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}

function tally(answers: readonly Received[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const answer of answers) counts[outcome(answer)] = (counts[outcome(answer)] ?? 0) + 1;
  return counts;
}

test('all threads answer, and /metrics adds up what each has counted', async () => {
  await using na = await startThreaded();
  await Promise.all(times(MANY, () => sendRaw(na, 'GET', '/healthz')));
  const { text } = await sendRaw(na, 'GET', '/metrics');
  const line =
    /^mesh_na_http_requests_total\{method="GET",route="\/healthz",status="200"\} (\d+)$/m;
  assert.equal(line.exec(text)?.[1], String(MANY));
  for (const part of ['bucket{le="0.0001",', 'bucket{le="+Inf",', 'count{']) {
    const duration = `mesh_na_http_request_duration_seconds_${part}route="/healthz"} ${MANY}\n`;
    assert.ok(text.includes(duration), duration);
  }
  assert.match(text, /^mesh_na_http_request_duration_seconds_sum\{route="\/healthz"\} 0$/m);
  assert.match(text, /^mesh_na_active_nodes 0$/m);
  assert.equal(text.match(/^mesh_na_build_info/gm)?.length, 1);
});

test('a limit allows the specified number of requests, over all threads', async () => {
  await using na = await startThreaded({ environment: { MESH_RATE_LIMIT_ADMIN: '7/60' } });
  const requests = times(MANY, () => operatorRequest(na, '/admin/invite'));
  const answers = await Promise.all(requests.map((request) => fresh(na, request)));
  assert.deepEqual(tally(answers), { 200: 7, '429 rate_limit_exceeded': MANY - 7 });
  na.clock.advance(MINUTE + 1);
  assert.equal(outcome(await operate(na, '/admin/invite')), '200');
});

test('a public route has one limit over all threads', async () => {
  await using na = await startThreaded({ environment: { MESH_RATE_LIMIT_VERIFY: '5/60' } });
  const answers = await Promise.all(
    times(MANY, () => sendRaw(na, 'POST', '/boundary/verify', { pieces: ['{}'] })),
  );
  assert.deepEqual(tally(answers), {
    '400 missing_decision': 5,
    '429 rate_limit_exceeded': MANY - 5,
  });
});

test('failed proofs of one key are refused on every thread, and only those', async () => {
  await using na = await startThreaded({ environment: { MESH_RATE_LIMIT_NODE_FAILURES: '4/60' } });
  const [broken, sound] = [await joinedNode(na), await joinedNode(na)];
  const forged = await Promise.all(
    times(MANY, () => heartbeat(na, broken, { signedBy: newKey() })),
  );
  assert.deepEqual(tally(forged), {
    '401 node_auth_failed': 4,
    '429 rate_limit_exceeded': MANY - 4,
  });
  const afterwards = await Promise.all(
    times(6, () => heartbeat(na, broken, { signedBy: newKey() })),
  );
  assert.deepEqual(tally(afterwards), { '429 rate_limit_exceeded': 6 });
  const genuine = await Promise.all(times(6, () => heartbeat(na, broken)));
  assert.deepEqual(tally(genuine), { 200: 6 });
  const others = await Promise.all(times(6, () => heartbeat(na, sound)));
  assert.deepEqual(tally(others), { 200: 6 });
  na.clock.advance(MINUTE + 1);
  const later = await heartbeat(na, broken, { signedBy: newKey() });
  assert.equal(outcome(later), '401 node_auth_failed');
});

test('two joins with one invite on different threads: one certificate', async () => {
  await using na = await startThreaded();
  const { body } = await operate(na, '/admin/invite');
  const answers = await Promise.all(
    times(MANY, () => nodeRequest(na, '/join', newKey(), { invite_token: body.token_id })),
  );
  assert.deepEqual(tally(answers), { 200: 1, '403 invalid_invite_token': MANY - 1 });
});

test('a heartbeat sent to all threads at once is accepted once', async () => {
  await using na = await startThreaded();
  const node = await joinedNode(na);
  const nonce = 'the-same-nonce';
  const timestamp = new Date(na.clock.now()).toISOString();
  const answers = await Promise.all(times(MANY, () => heartbeat(na, node, { nonce, timestamp })));
  assert.deepEqual(tally(answers), { 200: 1, '401 node_auth_failed': MANY - 1 });
});

test('once a revocation is acknowledged, no thread serves a list without it', async () => {
  await using na = await startThreaded();
  for (let round = 0; round < 8; round += 1) {
    const node = await joinedNode(na);
    assert.equal(outcome(await operate(na, '/admin/revoke', { cert_id: node.certId })), '200');
    const lists = await Promise.all(times(6, () => sendRaw(na, 'GET', '/crl')));
    for (const { body } of lists) {
      const ids = body.revoked_certificates.map((entry: JsonObject) => entry.certificate_id);
      assert.ok(ids.includes(node.certId));
    }
  }
});

test('what is kept only in memory is the same on every thread', async () => {
  await using na = await startThreaded();
  for (const licensee of ['beta', 'gamma']) {
    await operate(na, '/admin/data-usage/policy', {
      licensee_sovereign_id: licensee,
      allowed_source_ids: [],
      allowed_access_types: [],
      valid_from: '2026-01-01',
      valid_until: '2099-01-01',
    });
    const read = await Promise.all(times(6, () => sendRaw(na, 'GET', '/data-usage/policy')));
    for (const { body } of read) assert.equal(body.licensee_sovereign_id, licensee);
  }
});

test('the graph documents of one moment agree on every thread', async () => {
  await using na = await startThreaded();
  for (const subject of ['beta', 'gamma', 'delta']) {
    await operate(na, '/admin/recognition-treaties', {
      subject_sovereign_id: subject,
      subject_public_keys: [newKey().publicKey],
    });
    const graphs = await Promise.all(times(6, () => sendRaw(na, 'GET', '/recognition-graph')));
    for (const { text } of graphs) assert.ok(text.includes(`"${subject}"`));
    assert.equal(new Set(graphs.map(({ text }) => text)).size, 1);
  }
});

test('a port in use prevents the start of several threads too', async () => {
  await using na = await startThreaded();
  const { port } = new URL(na.url);
  await assert.rejects(startTestAuthority({ flags: { threads: '3', port } }), /Cannot listen on/);
});

test('the number of threads is validated', async () => {
  for (const threads of ['0', '-1', '65', 'two']) {
    await assert.rejects(
      startTestAuthority({ flags: { threads } }),
      /threads must be a whole number/,
    );
  }
});

test('a crash of a thread is fatal', async () => {
  const cause = await new Promise<unknown>((resolve) => {
    edgeThreadOn(new Worker('throw new Error("broken")', { eval: true }), resolve);
  });
  assert.match(String(cause), /broken/);
});

test('every JSON value passes between threads with its kinds of numbers', () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 4 }), (text) => {
      const value = parsedOrNull(text);
      const crossed = fromCloneable(structuredClone(toCloneable(value))) as JsonValue;
      assert.equal(canonicalJson(crossed), canonicalJson(value));
    }),
  );
});

test('numbers, and names that every object has, pass between threads unchanged', () => {
  for (const text of [
    '{"a":1,"b":1.0,"c":-0.0,"d":12345678901234567890123,"e":1e300}',
    '{"__proto__":{"x":1.5},"constructor":[2.0]}',
    '{"value":1.5}',
    '[[],{},[{"a":[0.5]}]]',
  ]) {
    const value = parseJson(text);
    const crossed = fromCloneable(structuredClone(toCloneable(value))) as JsonValue;
    assert.equal(canonicalJson(crossed), canonicalJson(value));
    assert.equal(isJsonObject(crossed), isJsonObject(value));
  }
});

test('a heartbeat is the same after it has been taken apart and put together', () => {
  const beat: CallInput<'heartbeat'> = {
    cert_id: 'c',
    status: 'ok',
    bulletin: true,
    authority_keys_digest: 'f00d',
    node: {
      publicKey: 'k',
      signedAt: 1.5,
      nonce: 'n',
      verdict: 'valid',
      remoteAddr: '::1',
      identity: null,
    },
  };
  assert.deepEqual(heartbeatIn(...structuredClone(heartbeatRow(beat))), beat);
});

/** Null for a text that the parser refuses, such as one with a duplicate name. */
function parsedOrNull(text: string): JsonValue {
  try {
    return parseJson(text);
  } catch {
    return null;
  }
}
