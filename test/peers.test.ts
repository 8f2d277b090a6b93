/** The logged address of a client, which is known without a lookup only while all connections have the same one. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import fc from 'fast-check';
import { createPeers } from '../src/edge/request/request-head.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';

const HERE = '127.0.0.1';
const THERE = '127.0.0.2';

test('no connection is ever attributed to another address, as connections open and close', () => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof(fc.constantFrom('a', 'b', 'c'), fc.nat()), { maxLength: 60 }),
      (happenings) => {
        const peers = createPeers();
        const open: string[] = [];
        for (const happening of happenings) {
          if (typeof happening === 'string') {
            peers.opened(happening);
            open.push(happening);
          } else if (open.length > 0) {
            open.splice(happening % open.length, 1);
            peers.closed();
          }
          if (peers.only !== null) assert.ok(open.every((address) => address === peers.only));
        }
        while (open.pop() !== undefined) peers.closed();
        peers.opened('d');
        assert.equal(peers.only, 'd');
      },
    ),
  );
});

async function connectFrom(na: TestAuthority, localAddress: string): Promise<Socket> {
  const socket = connect({ port: Number(new URL(na.url).port), host: HERE, localAddress });
  await once(socket, 'connect');
  return socket;
}

let requests = 0;

/** The address that is logged for a request on the connection. */
async function loggedAddress(na: TestAuthority, socket: Socket): Promise<string | undefined> {
  requests += 1;
  const id = `request-${requests}`;
  socket.write(`GET /healthz HTTP/1.1\r\nHost: na\r\nX-Request-ID: ${id}\r\n\r\n`);
  await once(socket, 'data');
  await na.settle();
  const line = na.logLines.find((text) => text.includes(`request_id=${id} `));
  return / remote_addr=(\S+)/.exec(line ?? '')?.[1];
}

async function openViewer(na: TestAuthority, localAddress: string): Promise<Socket> {
  const socket = await connectFrom(na, localAddress);
  socket.write(
    'GET /live?topic=dashboard HTTP/1.1\r\nHost: na\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n',
  );
  await once(socket, 'data');
  return socket;
}

test('each request is logged with the address of its own connection, however many there are', async () => {
  await using na = await startTestAuthority();
  const first = await connectFrom(na, HERE);
  assert.equal(await loggedAddress(na, first), HERE);
  const second = await connectFrom(na, THERE);
  assert.equal(await loggedAddress(na, second), THERE);
  assert.equal(await loggedAddress(na, first), HERE);
  first.destroy();
  assert.equal(await loggedAddress(na, second), THERE);
  second.destroy();
  const third = await connectFrom(na, HERE);
  assert.equal(await loggedAddress(na, third), HERE);
  third.destroy();
});

test('a viewer of live pages does not count as an HTTP client', async () => {
  await using na = await startTestAuthority();
  const viewer = await openViewer(na, THERE);
  const first = await connectFrom(na, HERE);
  assert.equal(await loggedAddress(na, first), HERE);
  viewer.destroy();
  const second = await connectFrom(na, THERE);
  assert.equal(await loggedAddress(na, second), THERE);
  assert.equal(await loggedAddress(na, first), HERE);
  for (const socket of [first, second]) socket.destroy();
});
