/** Nodes whose requests arrive faster than they can be answered: which wait, which pass, and which are turned away. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createNodeQueue } from '../src/edge/node-queue.ts';
import { type ChildServer, NO_LIMITS, startChildServer } from './support/child-server.ts';
import { networkFolder } from './support/folders.ts';
import { rawConnection } from './support/raw-http.ts';
import {
  get,
  joinedNode,
  operatorRequest,
  type SignedRequest,
  sendSigned,
  signedByNode,
} from './support/requests.ts';

/** A queue whose clock advances by the cost of each answer, and whose turns are run by the test. */
function slowQueue(longestWaitMs: number, costMs: number) {
  let now = 0;
  const turns: (() => void)[] = [];
  const events: string[] = [];
  const queue = createNodeQueue<string>({
    longestWaitMs,
    elapsed: () => now,
    schedule: (next) => turns.push(next),
    answer(request, body) {
      events.push(`${request} ${Buffer.from(body)}`);
      now += costMs;
    },
    shed: (request) => events.push(`${request} shed`),
    send: () => events.push('sent'),
  });
  return {
    events,
    takeBytes: queue.take,
    take: (request: string, body = 'body') => queue.take(request, Buffer.from(body)),
    wait(ms: number) {
      now += ms;
    },
    /** Runs the scheduled turns, and returns what has happened since the last call. */
    turn() {
      for (const next of turns.splice(0)) next();
      return events.splice(0);
    },
    isIdle: () => turns.length === 0,
  };
}

test('a request within a turn’s share of work is answered at once', () => {
  const { take, turn, events, isIdle } = slowQueue(1000, 10);
  assert.equal(take('a'), null);
  assert.equal(take('b'), null);
  assert.deepEqual(events, ['a body', 'b body']);
  turn();
  assert.ok(isIdle());
});

test('a request beyond it waits for a later turn, in order of arrival, ahead of new arrivals', () => {
  const { take, turn } = slowQueue(1000, 10);
  for (const name of ['a', 'b', 'c', 'd', 'e']) take(name);
  assert.deepEqual(turn(), ['a body', 'b body', 'sent', 'c body', 'd body', 'sent']);
  assert.notEqual(take('f'), null);
  assert.deepEqual(turn(), ['sent', 'e body', 'f body', 'sent']);
  assert.equal(take('g'), null);
});

test('a waiting body is a copy, since its bytes are reused', () => {
  const { takeBytes, turn } = slowQueue(1000, 20);
  const bytes = Buffer.from('mine');
  takeBytes('a', bytes);
  takeBytes('b', bytes);
  bytes.fill('x');
  assert.deepEqual(turn(), ['a mine', 'sent', 'b mine', 'sent']);
});

test('requests that waited longer than a client would are turned away, and later ones are answered', () => {
  const { take, turn, wait } = slowQueue(100, 20);
  take('a');
  take('b');
  wait(60);
  take('c');
  wait(60);
  assert.deepEqual(turn(), ['a body', 'sent', 'b shed', 'c body', 'sent']);
});

test('a client that disconnected is neither answered nor turned away', () => {
  const { take, turn, isIdle } = slowQueue(100, 20);
  take('a');
  const leave = take('b');
  take('c');
  leave?.();
  leave?.();
  assert.deepEqual(turn(), ['a body', 'sent', 'c body', 'sent']);
  assert.ok(isIdle());
});

test('a queue whose requests all disconnected takes one turn at a time afterwards', () => {
  const { take, turn } = slowQueue(100, 20);
  take('a');
  take('b')?.();
  assert.deepEqual(turn(), ['a body']);
  take('c');
  take('d');
  assert.deepEqual(turn(), ['c body', 'sent', 'd body', 'sent']);
});

test('waiting bodies are limited in bytes, beyond which requests are turned away at once', () => {
  const { take, events } = slowQueue(100, 20);
  const large = 'x'.repeat(1024 * 1024);
  take('a');
  for (let count = 0; count < 64; count += 1) take('large', large);
  assert.deepEqual(events, ['a body']);
  assert.equal(take('b'), null);
  assert.deepEqual(events, ['a body', 'b shed']);
});

test('without a maximum wait, requests beyond a share of work also wait, and are never turned away', () => {
  const { take, turn, wait, isIdle } = slowQueue(0, 20);
  for (const name of ['a', 'b', 'c']) take(name);
  wait(3_600_000);
  assert.deepEqual(turn(), ['a body', 'sent', 'b body', 'sent']);
  assert.deepEqual(turn(), ['sent', 'c body', 'sent']);
  turn();
  assert.ok(isIdle());
});

const AT_ONCE = 2000;
/** Fewer than the number remembered for each node, because they arrive in any order. */
const BEATS_OF_ONE = 100;

for (const threads of ['1', '2']) {
  test(`of ${AT_ONCE} heartbeats at once some are shed with ${threads} thread(s), health and operators pass, and all succeed later`, async () => {
    await using folder = networkFolder('alpha');
    await using server = await startChildServer(folder.path, {
      environment: { ...NO_LIMITS, MESH_LONGEST_WAIT_MS: '1' },
      args: ['--threads', threads],
    });
    const { na } = server;
    const { beats, beaten, health, invite } = await atOnce(server);
    const answers = await Promise.all(beaten);
    assert.match(await health, /^HTTP\/1\.1 200 /);
    assert.match(await invite, /^HTTP\/1\.1 200 /);
    const shed = beats.filter((_, index) => /^HTTP\/1\.1 503 /.test(answers[index] ?? ''));
    const accepted = answers.filter((answer) => /^HTTP\/1\.1 200 /.test(answer));
    assert.equal(shed.length + accepted.length, AT_ONCE);
    assert.ok(shed.length > 0 && accepted.length > 0, `${shed.length} of ${AT_ONCE} were shed`);
    for (const answer of answers.filter((text) => text.startsWith('HTTP/1.1 503 '))) {
      assert.match(answer, /\r\nRetry-After: [12]\r\n/);
      assert.match(answer, /"code":"overloaded"/);
    }
    // Nothing was changed: the same bytes with the same nonces are accepted.
    for (const beat of shed.slice(0, 20)) assert.equal((await sendSigned(na, beat)).status, 200);
    const { text } = await get(na, '/metrics');
    assert.match(text, new RegExp(`^mesh_na_requests_shed_total ${shed.length}$`, 'm'));
  });
}

test(`of ${AT_ONCE} heartbeats at once none is shed without a maximum wait, and health and operators are answered`, async () => {
  await using folder = networkFolder('alpha');
  await using server = await startChildServer(folder.path, {
    environment: { ...NO_LIMITS, MESH_LONGEST_WAIT_MS: '0' },
  });
  const { beaten, health, invite } = await atOnce(server);
  for (const answer of await Promise.all([...beaten, health, invite])) {
    assert.match(answer, /^HTTP\/1\.1 200 /);
  }
  const { text } = await get(server.na, '/metrics');
  assert.match(text, /^mesh_na_requests_shed_total 0$/m);
});

/**
 * Sends heartbeats, then a health check and an invite, so that the server finds all of them waiting; returns their
 * answers.
 */
async function atOnce({ na, process }: ChildServer) {
  const beats: SignedRequest[] = [];
  while (beats.length < AT_ONCE) {
    const { key, certId } = await joinedNode(na);
    const beat = () => signedByNode(na, '/heartbeat', key, { cert_id: certId, status: 'healthy' });
    beats.push(...Array.from({ length: BEATS_OF_ONE }, beat));
  }
  const requests = [...beats, HEALTH, operatorRequest(na, '/admin/invite', {})];
  const connections = await Promise.all(requests.map(() => rawConnection(na.url)));
  process.kill('SIGSTOP');
  for (const [index, request] of requests.entries()) connections[index]?.write(rawRequest(request));
  process.kill('SIGCONT');
  const answers = connections.map(async (connection) => {
    const text = await connection.until(/\r\n\r\n[\s\S]*\}$/);
    connection[Symbol.dispose]();
    return text;
  });
  const [health, invite] = answers.splice(AT_ONCE) as [Promise<string>, Promise<string>];
  return { beats, beaten: answers, health, invite };
}

const HEALTH: SignedRequest = { method: 'GET', path: '/healthz', init: { headers: {} } };

function rawRequest({ method, path, init }: SignedRequest): string {
  const body = String(init.body ?? '');
  const headers = Object.entries(init.headers ?? {}).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  const length = method === 'GET' ? '' : `Content-Length: ${Buffer.byteLength(body)}\r\n`;
  return `${method} ${path} HTTP/1.1\r\nHost: na\r\n${headers.join('')}${length}\r\n${body}`;
}
