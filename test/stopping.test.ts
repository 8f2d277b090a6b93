/** Stops of a whole process: everything acknowledged is on disk, and no one can delay the end. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { Agent } from 'node:http';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { createLifecycle } from '../src/server/lifecycle/lifecycle.ts';
import { startTestAuthority } from './support/authority.ts';
import {
  type ChildServer,
  NO_LIMITS,
  runProgram,
  startChildServer,
} from './support/child-server.ts';
import { REAL_TIME } from './support/clock.ts';
import { ownNetwork } from './support/folders.ts';
import {
  get,
  heartbeat,
  joinedNode,
  operate,
  outcome,
  type SignedRequest,
  sendRaw,
  sendSigned,
  signedByNode,
  type TestNode,
} from './support/requests.ts';
import { until } from './support/until.ts';

const NODES = 12;

for (const threads of ['1', '2']) {
  suite(`with ${threads} thread(s)`, { concurrency: 2 }, () => {
    test('each heartbeat acknowledged on an idle connection during a stop is kept, and cannot be replayed; requests in progress are finished while new work is 503 shutting_down, and those that never end are given up', async (t) => {
      const server = await start(threads, { MESH_LIVENESS_FLUSH_MS: '60000' });
      const nodes = await Promise.all(Array.from({ length: NODES }, () => joinedNode(server.na)));
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      t.after(() => agent.destroy());
      assert.equal(outcome(await sendRaw(server.na, 'GET', '/healthz', { agent })), '200');
      const upload = await halfSent(server);
      const endless = await halfSent(server);
      const givenUp = once(endless.socket, 'data');
      let taken = 0;
      const beating = nodes.map((node) => beatUntilRefused(server, node, () => (taken += 1)));
      await until(async () => taken > 4 * NODES);
      const ended = server.end('SIGTERM');
      const beats = await Promise.all(beating);
      await until(async () => outcome(await get(server.na, '/genesis')) === '503 shutting_down');
      const old = await sendRaw(server.na, 'GET', '/genesis', { agent });
      assert.equal(outcome(old), '503 shutting_down');
      assert.match(String(old.headers.get('connection')), /close/);
      assert.equal(outcome(await get(server.na, '/healthz')), '200');
      const answered = once(upload.socket, 'data');
      upload.finish();
      assert.match(String(await answered), /^HTTP\/1\.1 403 [\s\S]*"certificate_not_found"/);
      assert.match(String(await givenUp), /^HTTP\/1\.1 408 [\s\S]*"request_timeout"/);
      const { code, stderr } = await ended;
      assert.equal(code, 0, stderr);
      assert.match(stderr, /Stopped\n$/);

      await using na = await startTestAuthority({ dataDir: server.na.dataDir, clock: REAL_TIME });
      const roster = (await operate(na, '/nodes', {}, { method: 'GET' })).body.nodes;
      for (const { node, acknowledged, lastServerTime } of beats) {
        // One whose answer was lost with its connection may be newer.
        assert.ok((roster[node.certId]?.last_heartbeat ?? '') >= lastServerTime);
        for (const replay of acknowledged.slice(-3)) {
          assert.equal(outcome(await sendSigned(na, replay)), '401 node_auth_failed');
        }
      }
    });

    test('/readyz says 503 before work is refused; after a second signal a half-sent upload delays nothing', async () => {
      const environment = { MESH_DRAIN_SECONDS: '60', MESH_LIVENESS_FLUSH_MS: '60000' };
      const server = await start(threads, environment);
      const node = await joinedNode(server.na);
      await halfSent(server);
      const { status: _, ...described } = (await get(server.na, '/readyz')).body;
      server.process.kill('SIGTERM');
      await until(async () => outcome(await get(server.na, '/readyz')) === '503 service_not_ready');
      assert.deepEqual((await get(server.na, '/readyz')).body.error.details, {
        problem: 'the service is stopping',
        ...described,
      });
      const beat = await heartbeat(server.na, node);
      assert.equal(outcome(await get(server.na, '/healthz')), '200');
      const { code, stderr } = await server.end('SIGTERM');
      assert.equal(code, 0);
      assert.match(stderr, /Stopped\n$/);
      await using na = await startTestAuthority({ dataDir: server.na.dataDir, clock: REAL_TIME });
      const roster = (await operate(na, '/nodes', {}, { method: 'GET' })).body.nodes;
      assert.equal(roster[node.certId]?.last_heartbeat, beat.body.server_time);
    });
  });
}

test('a signal while the state is read ends the process cleanly', async () => {
  const folder = ownNetwork();
  const { code, stdout } = await runProgram(
    ['serve', '--data-dir', folder, '--port', '0'],
    NO_LIMITS,
    (child) =>
      void until(async () => existsSync(join(folder, 'state'))).then(() => child.kill('SIGTERM')),
  );
  assert.equal(code, 0);
  assert.match(stdout, /SIGTERM: finishing requests in flight[\s\S]*Stopped\n$/);
});

async function start(
  threads: string,
  environment: Readonly<Record<string, string>> = {},
): Promise<ChildServer> {
  const folder = ownNetwork();
  const args = ['--threads', threads];
  return startChildServer(folder, { args, environment: { ...NO_LIMITS, ...environment } });
}

interface Beats {
  readonly node: TestNode;
  /** In the order in which they were acknowledged. */
  readonly acknowledged: SignedRequest[];
  lastServerTime: string;
}

/** Sends heartbeats on one connection, each after the previous answer, until one is refused. */
async function beatUntilRefused(
  { na }: ChildServer,
  node: TestNode,
  onTaken: () => void,
): Promise<Beats> {
  const beats: Beats = { node, acknowledged: [], lastServerTime: '' };
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  try {
    for (;;) {
      const body = { cert_id: node.certId, status: 'healthy' };
      const request = signedByNode(na, '/heartbeat', node.key, body);
      const pieces = [request.init.body ?? ''];
      const answer = await sendRaw(na, 'POST', '/heartbeat', { agent, pieces });
      if (answer.status !== 200) return beats;
      beats.acknowledged.push(request);
      beats.lastServerTime = answer.body.server_time;
      onTaken();
    }
  } catch {
    return beats;
  } finally {
    agent.destroy();
  }
}

/** A request in flight whose body is incomplete. */
async function halfSent({ na }: ChildServer): Promise<{ socket: Socket; finish(): void }> {
  const { hostname, port } = new URL(na.url);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  const body = '{"cert_id":"c","node_public_key":"k"}';
  const head = `POST /heartbeat HTTP/1.1\r\nHost: na\r\nContent-Length: ${body.length}\r\n\r\n`;
  // An earlier request is answered first, so that the server is known to read the connection.
  const known = once(socket, 'data');
  socket.write('GET /healthz HTTP/1.1\r\nHost: na\r\n\r\n');
  await known;
  socket.write(head + body.slice(0, 10));
  await get(na, '/healthz');
  await get(na, '/healthz');
  return { socket, finish: () => socket.write(body.slice(10)) };
}

for (const [what, took, expected] of [
  ['in time is waited for', 29_000, ['flushed', 'closed']],
  ['too late is reported before it has ended', 31_000, ['overrun', 'flushed', 'closed']],
] as const) {
  test(`a store that is closed ${what}`, async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const steps: string[] = [];
    let flush: () => void = () => undefined;
    const flushed = new Promise<void>((resolve) => {
      flush = resolve;
    });
    const lifecycle = createLifecycle();
    lifecycle.enter('serving');
    const stopped = lifecycle.stop(
      {
        announce: async () => undefined,
        drain: async () => undefined,
        cut: async () => undefined,
        flush: () => flushed.then(() => void steps.push('flushed')),
        overrun: () => steps.push('overrun'),
        close: async () => void steps.push('closed'),
      },
      { announceMs: 0, hurry: new AbortController().signal },
    );
    await new Promise(setImmediate);
    t.mock.timers.tick(took);
    flush();
    await stopped;
    t.mock.timers.tick(60_000);
    assert.deepEqual(steps, expected);
  });
}
