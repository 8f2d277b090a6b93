/** Replays where time does not run evenly: a busy authority, a clock that is set, a process that died. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { test } from 'node:test';
import { createNonceWindows } from '../src/authority/replay/nonce-window.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { MINUTE, SECOND } from './support/clock.ts';
import {
  freshNonce,
  joinedNode,
  outcome,
  type SignedRequest,
  sendSigned,
  signedByNode,
  type TestNode,
} from './support/requests.ts';

const TOLERANCE = 5 * MINUTE;

function signedBeat(na: TestAuthority, { key, certId }: TestNode): SignedRequest {
  return signedByNode(na, '/heartbeat', key, { cert_id: certId, status: 'healthy' });
}

test('B4: what a window gave up for its age stays refused, whatever the clock says later', () => {
  const windows = createNonceWindows(TOLERANCE, () => 0);
  windows.claim('node', 'first', 1000, 1000);
  windows.claim('node', 'second', 8 * MINUTE, 8 * MINUTE);
  assert.equal(windows.check('node', 'first', 1000), 'stale_timestamp');
  assert.equal(windows.check('node', 'other', 1001), 'fresh');
});

test('B4: a window gives nothing up before its age is a minute past the tolerance', () => {
  const windows = createNonceWindows(TOLERANCE, () => 0);
  windows.claim('node', 'first', 1000, 1000);
  windows.claim('node', 'second', TOLERANCE, 1000 + TOLERANCE + MINUTE);
  assert.equal(windows.check('node', 'first', 1000), 'nonce_replay');
});

test('B4: a nonce from a day ahead does not bar the present once the clock is right again', () => {
  const windows = createNonceWindows(TOLERANCE, () => 0);
  const day = 24 * 60 * MINUTE;
  for (let i = 0; i < 300; i += 1) windows.claim('node', `ahead ${i}`, day + i, day + i);
  windows.clockSetBack(MINUTE);
  assert.equal(windows.check('node', freshNonce(), MINUTE), 'stale_timestamp');
  for (let i = 1; i < 300; i += 1) windows.claim('node', `now ${i}`, MINUTE + i, MINUTE + i);
  assert.equal(windows.check('node', freshNonce(), 2 * MINUTE), 'fresh');
});

test('B4: heartbeats that were in time when they arrived are refused when a busy authority comes to them', async () => {
  await using na = await startTestAuthority({ flags: { threads: '2' } });
  const node = await joinedNode(na);
  const seen = Array.from({ length: 12 }, () => signedBeat(na, node));
  for (const beat of seen) assert.equal(outcome(await sendSigned(na, beat)), '200');
  na.clock.advance(TOLERANCE);
  const newer = await connectedTo(na);
  const replaying = await Promise.all(seen.map(() => connectedTo(na)));
  await newer.write(signedBeat(na, node));
  await Promise.all(replaying.map((connection, i) => connection.write(seen[i] as SignedRequest)));
  // The edges judge them while this thread, which is the authority's, stands still.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300);
  na.clock.advance(SECOND);
  assert.equal(await newer.status(), 200);
  for (const connection of replaying) assert.equal(await connection.status(), 401);
});

/** A connection whose request is on its way when `write` resolves. */
async function connectedTo({ url }: TestAuthority) {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname).setEncoding('utf8');
  await once(socket, 'connect');
  const answered = once(socket, 'data');
  return {
    write({ path, init: { body = '' } }: SignedRequest) {
      const head = `POST ${path} HTTP/1.1\r\nHost: test\r\nContent-Length: ${Buffer.byteLength(body)}`;
      return new Promise<void>((resolve) => {
        socket.write(`${head}\r\n\r\n${body}`, () => resolve());
      });
    },
    async status(): Promise<number> {
      const [text] = (await answered) as [string];
      socket.destroy();
      return Number(/^HTTP\/1.1 (\d+) /.exec(text)?.[1]);
    },
  };
}
