/** How many connections are accepted before file descriptors run out. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { type Listener, openListener } from '../src/edge/http/listener.ts';
import { connectionsPerThread } from '../src/server/front.ts';
import { ownPort } from './support/own-port.ts';
import { until } from './support/until.ts';

const MOST = 20;

interface Listening {
  readonly listener: Listener;
  readonly open: number;
  readonly pauses: number;
  [Symbol.dispose](): void;
}

/** Listens on a fixed port, as the program does: only a fixed port can be opened again at once. */
async function startListening(): Promise<Listening> {
  const uws: typeof import('uWebSockets.js') = createRequire(import.meta.url)('uWebSockets.js');
  const app = uws.App();
  let open = 0;
  let pauses = 0;
  let listener: Listener | null = null;
  function noteConnection(change: number): void {
    open += change;
    listener?.noteConnections(open);
  }
  app.filter((_res, change) => noteConnection(Number(change)));
  app.get('/*', (res) => void res.end('here'));
  const onPaused = () => {
    pauses += 1;
  };
  const [host, port] = ['127.0.0.1', await ownPort()];
  listener = openListener({ app, uws, host, port, maxConnections: MOST, onPaused });
  return {
    listener,
    get open() {
      return open;
    },
    get pauses() {
      return pauses;
    },
    [Symbol.dispose]() {
      listener.close();
      app.close();
    },
  };
}

/** A connection that got an answer; null if it was refused. */
async function answered({ listener }: Listening): Promise<Socket | null> {
  const socket = connect(listener.port, '127.0.0.1');
  socket.on('error', () => undefined);
  const answer = once(socket, 'data').then(() => socket);
  answer.catch(() => undefined);
  socket.once('connect', () => socket.write('GET / HTTP/1.1\r\nHost: na\r\n\r\n'));
  return Promise.race([answer, once(socket, 'close').then(() => null)]).catch(() => null);
}

test('when connections would exhaust the descriptors, no more are accepted until some have ended', async () => {
  using server = await startListening();
  const held = await Promise.all(Array.from({ length: MOST }, () => answered(server)));
  assert.ok(held.every((socket) => socket !== null));
  assert.equal(await answered(server), null);
  assert.equal(server.pauses, 1);
  for (const socket of held.splice(0, 5)) socket?.destroy();
  await until(() => server.open === MOST - 5);
  let later: Socket | null = null;
  await until(async () => {
    later = await answered(server);
    return later !== null;
  });
  for (const socket of [...held, later as Socket | null]) socket?.destroy();
  await until(() => server.open === 0);
});

test('a listener that was closed while it paused accepts nothing more', async () => {
  using server = await startListening();
  const held = await Promise.all(Array.from({ length: MOST }, () => answered(server)));
  server.listener.close();
  for (const socket of held) socket?.destroy();
  await until(() => server.open === 0);
  assert.equal(await answered(server), null);
});

test('the descriptors of the process are divided among its threads, and some are reserved', () => {
  const one = connectionsPerThread(1);
  assert.ok(one >= 128);
  for (const threads of [2, 3, 8]) {
    const each = connectionsPerThread(threads);
    assert.ok(one === Infinity ? each === Infinity : each === Math.floor(one / threads));
  }
});
