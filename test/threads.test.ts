/** HTTP on several threads: what one thread has acknowledged or counted applies to all of them, and how they talk. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import fc from 'fast-check';
import { problemText } from '../src/base/error-message.ts';
import { parseJson } from '../src/base/json/parse.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../src/base/json/value.ts';
import { canonicalJson } from '../src/base/json/write.ts';
import { createTraffic } from '../src/edge/http/traffic.ts';
import type { CallInput } from '../src/protocol/contract/calls.ts';
import { Refusal } from '../src/protocol/refusals.ts';
import {
  fromCloneable,
  heartbeatIn,
  heartbeatRow,
  toCloneable,
} from '../src/server/threads/crossing.ts';
import { edgeThreadOn } from '../src/server/threads/edge-threads.ts';
import { type Channel, createPeer, type Message } from '../src/server/threads/rpc.ts';
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

// Calls and notices between threads, and the barrier that releases the memory of replaced documents.

type Served = {
  double(value: number): number;
  later(value: number): Promise<number>;
  joined(...parts: string[]): string;
  fail(): void;
  refuse(): void;
  note(what: string): void;
};

/** A peer that asks, what has been noted, and every message that it has received. */
function connected({ gathers = false } = {}) {
  const [near, far] = createLocalChannels();
  const noted: string[] = [];
  const served: Served = {
    double: (value) => 2 * value,
    later: async (value) => value,
    joined: (...parts) => parts.join(),
    fail() {
      throw new TypeError('a bug over there');
    },
    refuse() {
      throw new Refusal('service_not_ready', { problem: 'gone' });
    },
    note: (what) => noted.push(what),
  };
  const server = createPeer(far, served, { gathers });
  return { peer: createPeer<Served>(near, {}, { gathers }), server, noted, ...near };
}

test('every call is answered, with the result or with the problem and its stack', async () => {
  const { peer } = connected();
  const results = [peer.call('double', 2), peer.call('later', 5), peer.call('joined', 'a', 'b')];
  assert.deepEqual(await Promise.all(results), [4, 5, 'a,b']);
  const problem = await peer.call('fail').catch((cause: unknown) => cause);
  assert.equal((problem as Error).message, 'a bug over there');
  assert.match(problemText(problem), /TypeError: a bug over there at /);
  await assert.rejects(peer.call('refuse'), {
    refusal: 'service_not_ready',
    details: { problem: 'gone' },
  });
});

test('a call of an unknown procedure is answered too', async () => {
  const { peer } = connected();
  const unknown = peer as unknown as { call(name: string): Promise<void> };
  await assert.rejects(unknown.call('toString'), /There is no procedure toString/);
});

test('what a turn says leaves in one message at its end, in order, and the answers in one as soon as they are given', async () => {
  const { peer, noted, received } = connected({ gathers: true });
  const calls = [peer.call('double', 1), peer.call('later', 3), peer.call('fail')];
  peer.notify('note', 'after');
  assert.deepEqual(noted, []);
  const [double, later, failed] = await Promise.allSettled(calls);
  assert.deepEqual(
    [double, later].map((result) => result?.status === 'fulfilled' && result.value),
    [2, 3],
  );
  assert.equal(failed?.status, 'rejected');
  assert.deepEqual(noted, ['after']);
  assert.deepEqual(
    received.map(([said, returned, failures]) => [said, returned, failures.length]),
    [
      [[], [1, 2], 2],
      [[], [2, 3], 0],
    ],
  );
});

test('a peer that is silenced answers nothing more, but still says what it says itself', async () => {
  const { peer, server, received, noted } = connected({ gathers: true });
  void peer.call('later', 1);
  void peer.call('double', 1);
  server.silence();
  peer.notify('note', 'heard');
  for (let turn = 0; turn < 3; turn += 1) await new Promise(setImmediate);
  assert.deepEqual(received, []);
  assert.deepEqual(noted, ['heard']);
});

test('a barrier waits for the answers begun before it, and for no others', async () => {
  const traffic = createTraffic();
  const passed: string[] = [];
  traffic.arrived();
  traffic.arrived();
  const early = traffic.begun();
  const first = traffic.barrier().then(() => passed.push('first'));
  const late = traffic.begun();
  const second = traffic.barrier().then(() => passed.push('second'));
  await new Promise(setImmediate);
  assert.deepEqual(passed, []);
  traffic.read(late);
  await new Promise(setImmediate);
  assert.deepEqual(passed, [], 'an older answer is still being made');
  traffic.read(early);
  await Promise.all([first, second]);
  traffic.left();
  traffic.left();
  await traffic.idle();
  await traffic.barrier();
});

test('idle waits for requests whose answer has not begun', async () => {
  const traffic = createTraffic();
  traffic.arrived();
  let isIdle = false;
  const idle = traffic.idle().then(() => (isIdle = true));
  await new Promise(setImmediate);
  assert.equal(isIdle, false);
  traffic.left();
  await idle;
});

interface LocalChannel extends Channel {
  /** What has arrived at this end. */
  readonly received: Message[];
}

/** What one end sends arrives at the other at once, as a copy. */
function createLocalChannels(): readonly [LocalChannel, LocalChannel] {
  const ends: readonly [End, End] = [endOf(() => ends[1]), endOf(() => ends[0])];
  return [ends[0].channel, ends[1].channel];
}

interface End {
  readonly channel: LocalChannel;
  take(message: Message): void;
}

function endOf(other: () => End): End {
  const received: Message[] = [];
  const listeners: ((message: Message) => void)[] = [];
  return {
    channel: {
      received,
      postMessage: (message) => other().take(structuredClone(message)),
      on: (_event, listener) => listeners.push(listener),
    },
    take(message) {
      received.push(message);
      for (const listener of listeners) listener(message);
    },
  };
}
