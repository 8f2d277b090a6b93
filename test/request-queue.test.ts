/** Requests that arrive faster than they can be answered: which wait, which pass, and which are turned away. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { createRequestQueue, type Line } from '../src/edge/limits/request-queue.ts';
import { isQuestion } from '../src/protocol/contract/calls.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { NO_LIMITS, startChildServer } from './support/child-server.ts';
import { REAL_TIME } from './support/clock.ts';
import { networkFolder } from './support/folders.ts';
import { metricOf } from './support/metrics.ts';
import { rawConnection } from './support/raw-http.ts';
import {
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
  const queue = createRequestQueue({
    longestWaitMs,
    elapsed: () => now,
    schedule: (next) => turns.push(next),
    progress: () => undefined,
  });
  queue.onSlice(() => events.push('sent'));

  function work(name: string): void {
    events.push(name);
    now += costMs;
  }

  return {
    ...queue,
    events,
    work,
    /** Does the work of a request at once and returns null, or queues it and returns how it leaves. */
    take(name: string, line: Line = 'node', bytes = 0): (() => void) | null {
      const shed = () => void events.push(`${name} shed`);
      if (queue.isFree(line)) {
        work(name);
        return null;
      }
      const leave = queue.wait(line, { run: () => work(name), shed, bytes });
      if (leave === null) shed();
      return leave;
    },
    pass(ms: number) {
      now += ms;
    },
    /** Runs the scheduled turns, and returns what has happened since the last call. */
    async runTurn() {
      for (const next of turns.splice(0)) next();
      await new Promise(setImmediate);
      return events.splice(0);
    },
    isIdle: () => turns.length === 0,
  };
}

const LINES: readonly Line[] = ['node', 'operator', 'document', 'public'];

for (const line of LINES) {
  suite(`in the line ${line}`, () => {
    test('a request within a slice is answered at once', async () => {
      const { take, runTurn, events, isIdle } = slowQueue(1000, 10);
      assert.equal(take('a', line), null);
      assert.equal(take('b', line), null);
      assert.deepEqual(events, ['a', 'b']);
      await runTurn();
      assert.ok(isIdle());
    });

    test('a request beyond it waits for a later turn, in order of arrival, ahead of new arrivals', async () => {
      const { take, runTurn } = slowQueue(1000, 10);
      for (const name of ['a', 'b', 'c', 'd', 'e']) take(name, line);
      assert.deepEqual(await runTurn(), ['a', 'b', 'sent', 'c', 'd', 'sent']);
      assert.notEqual(take('f', line), null);
      assert.deepEqual(await runTurn(), ['sent', 'e', 'f', 'sent']);
      assert.equal(take('g', line), null);
    });

    test('requests that waited longer than a client would are turned away, and later ones are answered', async () => {
      const { take, runTurn, pass } = slowQueue(100, 20);
      take('a', line);
      take('b', line);
      pass(60);
      take('c', line);
      pass(60);
      assert.deepEqual(await runTurn(), ['a', 'sent', 'b shed', 'c', 'sent']);
    });

    test('a client that disconnected is neither answered nor turned away', async () => {
      const { take, runTurn, isIdle } = slowQueue(100, 20);
      take('a', line);
      const leave = take('b', line);
      take('c', line);
      leave?.();
      leave?.();
      assert.deepEqual(await runTurn(), ['a', 'sent', 'c', 'sent']);
      assert.ok(isIdle());
    });

    test('a queue whose requests all disconnected takes one turn at a time afterwards', async () => {
      const { take, runTurn } = slowQueue(100, 20);
      take('a', line);
      take('b', line)?.();
      assert.deepEqual(await runTurn(), ['a']);
      take('c', line);
      take('d', line);
      assert.deepEqual(await runTurn(), ['c', 'sent', 'd', 'sent']);
    });

    test('waiting bodies are limited in bytes, beyond which requests are turned away at once', () => {
      const { take, events } = slowQueue(100, 20);
      take('a', line);
      for (let count = 0; count < 64; count += 1) take('large', line, 1024 * 1024);
      assert.deepEqual(events, ['a']);
      assert.equal(take('b', line, 1), null);
      assert.deepEqual(events, ['a', 'b shed']);
    });

    test('without a maximum wait, requests beyond a slice also wait, and are never turned away', async () => {
      const { take, runTurn, pass, isIdle } = slowQueue(0, 20);
      for (const name of ['a', 'b', 'c']) take(name, line);
      pass(3_600_000);
      assert.deepEqual(await runTurn(), ['a', 'sent', 'b', 'sent']);
      assert.deepEqual(await runTurn(), ['sent', 'c', 'sent']);
      await runTurn();
      assert.ok(isIdle());
    });
  });
}

test('a call waits for a slice if it asks for something by name or filter and changes nothing', () => {
  for (const [name, given, isOne] of [
    ['listAgents', {}, false],
    ['countAgents', null, false],
    ['listAgents', { capability: 'x' }, true],
    ['readRoster', 1, true],
    ['withdrawInviteBatch', { batch: 'x' }, false],
  ] as const) {
    assert.equal(isQuestion(name, given), isOne, `${name} ${JSON.stringify(given)}`);
  }
});

test('each turn has a slice for nodes, and one for operators, strangers, or requests that have begun, one after another', async () => {
  const { take, runTurn, events } = slowQueue(1000, 20);
  for (const name of ['n1', 'n2', 'n3', 'n4']) take(name);
  for (const name of ['p1', 'p2', 'p3']) take(name, 'public');
  for (const name of ['o1', 'o2', 'o3']) take(name, 'operator');
  assert.deepEqual(events.splice(0), ['n1', 'p1', 'o1']);
  assert.deepEqual(await runTurn(), ['sent', 'n2', 'o2', 'sent']);
  assert.deepEqual(await runTurn(), ['sent', 'n3', 'p2', 'sent']);
  assert.deepEqual(await runTurn(), ['sent', 'n4', 'o3', 'sent']);
  assert.deepEqual(await runTurn(), ['sent', 'p3', 'sent']);
});

test('whatever many requests have waited for together, each goes on in a slice, with all that follows', async () => {
  const { runTurn, turn, work } = slowQueue(1000, 15);
  const goOn = async (name: string) => {
    await turn();
    await null;
    work(name);
  };
  for (const name of ['a', 'b', 'c']) void goOn(name);
  assert.deepEqual(await runTurn(), ['sent', 'a', 'b', 'sent']);
  assert.deepEqual(await runTurn(), ['sent', 'c', 'sent']);
});

test('few requests of strangers have begun at once, and others begin when those end', async () => {
  const { take, began, runTurn, isIdle } = slowQueue(1000, 0);
  const ends: (() => void)[] = [];
  for (let count = 0; count < 128; count += 1) {
    assert.equal(take('a', 'public'), null);
    began('public', new Promise<void>((resolve) => ends.push(resolve)));
  }
  await runTurn();
  take('b', 'public');
  take('c', 'operator');
  assert.deepEqual(await runTurn(), ['c']);
  assert.ok(isIdle());
  ends[0]?.();
  await new Promise(setImmediate);
  assert.deepEqual(await runTurn(), ['sent', 'b', 'sent']);
});

test('what many readers do after each other leaves turns to everyone else', async () => {
  const { take, turn, runTurn, work } = slowQueue(1000, 20);
  const read = async (name: string) => {
    for (let page = 1; page <= 3; page += 1) {
      await turn();
      work(`${name} ${page}`);
    }
  };
  void read('a');
  void read('b');
  assert.deepEqual(await runTurn(), ['sent', 'a 1', 'sent']);
  for (const name of ['p1', 'p2']) take(name, 'public');
  assert.deepEqual(await runTurn(), ['p1', 'sent', 'p2', 'sent']);
  assert.deepEqual(await runTurn(), ['sent', 'b 1', 'sent']);
  assert.deepEqual(await runTurn(), ['sent', 'a 2', 'sent']);
});

const AT_ONCE = 800;
/** Fewer than the number remembered for each node, because they arrive in any order. */
const BEATS_OF_ONE = 100;

/** An authority that finds everything waiting that was sent at once. */
async function startBusy(
  threads: '1' | '2',
  longestWait: string,
): Promise<{ na: TestAuthority; signal(name: NodeJS.Signals): void } & AsyncDisposable> {
  const environment = { MESH_LONGEST_WAIT_MS: longestWait };
  if (threads === '1') {
    // What one turn of the event loop sends arrives before its thread reads any of it.
    const na = await startTestAuthority({ environment, flags: { threads }, clock: REAL_TIME });
    return { na, signal: () => undefined, [Symbol.asyncDispose]: na[Symbol.asyncDispose] };
  }
  const folder = networkFolder('alpha');
  const { na, process, ...server } = await startChildServer(folder.path, {
    environment: { ...NO_LIMITS, ...environment },
    args: ['--threads', threads],
  });
  return {
    na,
    signal: (name) => process.kill(name),
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await folder[Symbol.asyncDispose]();
    },
  };
}

for (const threads of ['1', '2'] as const) {
  test(`of ${AT_ONCE} heartbeats at once some are shed with ${threads} thread(s), health and operators pass, and all succeed later`, async () => {
    await using server = await startBusy(threads, '1');
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
    assert.equal(await metricOf(na, 'mesh_na_requests_shed_total'), shed.length);
  });
}

test(`of ${AT_ONCE} heartbeats at once none is shed without a maximum wait, and health and operators are answered`, async () => {
  await using server = await startBusy('1', '0');
  const { beaten, health, invite } = await atOnce(server);
  for (const answer of await Promise.all([...beaten, health, invite])) {
    assert.match(answer, /^HTTP\/1\.1 200 /);
  }
  assert.equal(await metricOf(server.na, 'mesh_na_requests_shed_total'), 0);
});

/**
 * Sends heartbeats, then a health check and an invite, so that the server finds all of them waiting; returns their
 * answers.
 */
async function atOnce({ na, signal }: Awaited<ReturnType<typeof startBusy>>) {
  const beats: SignedRequest[] = [];
  while (beats.length < AT_ONCE) {
    const { key, certId } = await joinedNode(na);
    const beat = () => signedByNode(na, '/heartbeat', key, { cert_id: certId, status: 'healthy' });
    beats.push(...Array.from({ length: BEATS_OF_ONE }, beat));
  }
  const requests = [...beats, HEALTH, operatorRequest(na, '/admin/invite', {})];
  const connections = await Promise.all(requests.map(() => rawConnection(na.url)));
  signal('SIGSTOP');
  for (const [index, request] of requests.entries()) connections[index]?.write(rawRequest(request));
  signal('SIGCONT');
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
