/** Replays when time is irregular: a busy authority, a changed clock, a killed process. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { cpSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { createNonceLedger } from '../src/authority/replay/nonce-ledger.ts';
import { createNonceWindows } from '../src/authority/replay/nonce-window.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { startTestAuthority, type TestAuthority, type TestOptions } from './support/authority.ts';
import { HOUR, MINUTE, SECOND, setClock, tick } from './support/clock.ts';
import { metricOf } from './support/metrics.ts';
import {
  freshNonce,
  get,
  heartbeat,
  invite,
  joinedNode,
  newKey,
  operate,
  operatorRequest,
  outcome,
  type Received,
  type SignedRequest,
  sendSigned,
  signedByNode,
  type TestNode,
} from './support/requests.ts';
import { scratchFolder } from './support/scratch.ts';
import { beat, openSession } from './support/sessions.ts';
import { LMDB_ONLY } from './support/test-stores.ts';

const TOLERANCE = 5 * MINUTE;
const DAY = 24 * HOUR;

function tolerance(seconds: string) {
  return { MESH_CLOCK_TOLERANCE_SECONDS: seconds };
}

function statusOf({ status }: Received): number {
  return status;
}

function signedBeat(na: TestAuthority, { key, certId }: TestNode, aheadMs = 0): SignedRequest {
  const timestamp = formatInstant(na.clock.now() + aheadMs);
  const body = { cert_id: certId, status: 'healthy' };
  return signedByNode(na, '/heartbeat', key, body, { timestamp });
}

test('what a window dropped for its age stays refused, whatever the clock says later', () => {
  const windows = createNonceWindows(TOLERANCE, () => 0);
  windows.claim('node', 'first', 1000, 1000);
  windows.claim('node', 'second', 8 * MINUTE, 8 * MINUTE);
  assert.equal(windows.check('node', 'first', 1000), 'stale_timestamp');
  assert.equal(windows.check('node', 'other', 1001), 'fresh');
});

test('a window drops nothing before its age is a minute past the tolerance', () => {
  const windows = createNonceWindows(TOLERANCE, () => 0);
  windows.claim('node', 'first', 1000, 1000);
  windows.claim('node', 'second', TOLERANCE, 1000 + TOLERANCE + MINUTE);
  assert.equal(windows.check('node', 'first', 1000), 'nonce_replay');
});

test('a nonce from a day ahead does not block the present once the clock is right again', () => {
  const windows = createNonceWindows(TOLERANCE, () => 0);
  for (let i = 0; i < 300; i += 1) windows.claim('node', `ahead ${i}`, DAY + i, DAY + i);
  windows.clockSetBack(MINUTE);
  assert.equal(windows.check('node', freshNonce(), MINUTE), 'stale_timestamp');
  for (let i = 1; i < 300; i += 1) windows.claim('node', `now ${i}`, MINUTE + i, MINUTE + i);
  assert.equal(windows.check('node', freshNonce(), 2 * MINUTE), 'fresh');
});

test('heartbeats that were in time when they arrived are refused if a busy authority reaches them too late', async () => {
  await using na = await startTestAuthority({ flags: { threads: '2' } });
  const node = await joinedNode(na);
  const seen = Array.from({ length: 12 }, () => signedBeat(na, node));
  for (const beat of seen) assert.equal(outcome(await sendSigned(na, beat)), '200');
  na.clock.advance(TOLERANCE);
  const newer = await connectedTo(na);
  const replaying = await Promise.all(seen.map(() => connectedTo(na)));
  await newer.write(signedBeat(na, node));
  await Promise.all(replaying.map((connection, i) => connection.write(seen[i] as SignedRequest)));
  // The edges check them while this thread, which is the authority's, is blocked.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300);
  na.clock.advance(SECOND);
  assert.equal(await newer.status(), 200);
  for (const connection of replaying) assert.equal(await connection.status(), 401);
});

/** The service's time, as determined by an operator whose clock is right. */
async function clockOf(na: TestAuthority, wallIsAheadBy = 0): Promise<number> {
  const timestamp = formatInstant(na.clock.now() - wallIsAheadBy);
  const { body } = await operate(na, '/admin/invite', { token_expiry_hours: 1 }, { timestamp });
  return Date.parse(body.expires_at) - HOUR;
}

test('a clock that is wrong for three seconds changes the time for no one', async () => {
  await using na = await startTestAuthority();
  const node = await joinedNode(na);
  const operation = operatorRequest(na, '/admin/invite');
  const beat = signedBeat(na, node);
  for (const request of [operation, beat])
    assert.equal(outcome(await sendSigned(na, request)), '200');
  na.clock.step(12 * MINUTE);
  for (let i = 0; i < 3; i += 1) await tick(na);
  const timestamp = formatInstant(na.clock.now() - 12 * MINUTE);
  assert.equal(outcome(await heartbeat(na, node, { timestamp })), '200');
  assert.equal(outcome(await operate(na, '/admin/invite', {}, { timestamp })), '200');
  na.clock.step(-12 * MINUTE);
  await tick(na);
  for (const request of [operation, beat]) {
    assert.equal(statusOf(await sendSigned(na, request)), 401);
  }
});

test('after a clock was followed forward and back, nothing is accepted twice', async () => {
  await using na = await startTestAuthority();
  const node = await joinedNode(na);
  const requests = [
    operatorRequest(na, '/admin/invite'),
    signedBeat(na, node),
    signedByNode(na, '/join', newKey(), { invite_token: await invite(na) }),
    signedByNode(na, '/renew', node.key, { cert_id: node.certId }),
  ];
  for (const request of requests) assert.equal(outcome(await sendSigned(na, request)), '200');
  await setClock(na, 12 * MINUTE);
  assert.equal(outcome(await heartbeat(na, node)), '200');
  assert.equal(outcome(await operate(na, '/admin/invite')), '200');
  await setClock(na, -12 * MINUTE);
  for (const request of requests) assert.match(outcome(await sendSigned(na, request)), /^40[13] /);
});

test('nothing is accepted twice across restarts under a fast clock either', async () => {
  await using na = await startTestAuthority();
  const operation = operatorRequest(na, '/admin/invite');
  assert.equal(outcome(await sendSigned(na, operation)), '200');
  na.clock.step(12 * MINUTE);
  await using ahead = await na.restart();
  await tick(ahead);
  na.clock.step(-12 * MINUTE);
  await using again = await ahead.restart();
  assert.equal(outcome(await sendSigned(again, operation)), '401 admin_auth_failed');
});

test('discarded nonces are refused if the clock is set back behind them', async () => {
  await using na = await startTestAuthority();
  const node = await joinedNode(na);
  const ahead = { timestamp: formatInstant(na.clock.now() + TOLERANCE - SECOND) };
  const requests = [
    operatorRequest(na, '/admin/invite', {}, ahead),
    signedByNode(na, '/join', newKey(), { invite_token: await invite(na) }, ahead),
    signedByNode(na, '/renew', node.key, { cert_id: node.certId }, ahead),
  ];
  for (const request of requests) assert.equal(outcome(await sendSigned(na, request)), '200');
  na.clock.advance(18 * MINUTE);
  await tick(na);
  await setClock(na, -9 * MINUTE);
  for (const request of requests) assert.match(outcome(await sendSigned(na, request)), /^40[13] /);
  await using again = await na.restart();
  for (const request of requests)
    assert.match(outcome(await sendSigned(again, request)), /^40[13] /);
  // The nonces of requests signed since then are still stored, so new requests pass.
  assert.equal(outcome(await operate(again, '/admin/invite')), '200');
  await tick(again);
});

test('a restart under a clock that was set back does not accept them either', async () => {
  await using na = await startTestAuthority();
  const timestamp = formatInstant(na.clock.now() + TOLERANCE - SECOND);
  const operation = operatorRequest(na, '/admin/invite', {}, { timestamp });
  assert.equal(outcome(await sendSigned(na, operation)), '200');
  na.clock.advance(18 * MINUTE);
  await tick(na);
  await na.stop();
  na.clock.step(-9 * MINUTE);
  await using again = await na.restart();
  assert.equal(outcome(await sendSigned(again, operation)), '401 admin_auth_failed');
  assert.equal(outcome(await operate(again, '/admin/invite')), '200');
});

test('nonces from a day ahead block no one once the clock is right, and stay spent for their day', async () => {
  await using na = await startTestAuthority();
  const right = na.clock.now();
  await setClock(na, DAY);
  const operation = operatorRequest(na, '/admin/invite');
  assert.equal(outcome(await sendSigned(na, operation)), '200');
  na.clock.advance(13 * MINUTE);
  await tick(na);
  na.clock.step(right - na.clock.now());
  await using again = await na.restart();
  assert.equal(outcome(await operate(again, '/admin/invite')), '200');
  na.clock.advance(DAY);
  await setClock(again, 0);
  assert.equal(outcome(await sendSigned(again, operation)), '401 admin_auth_failed');
});

for (const [was, becomes] of [
  ['300', '3600'],
  ['3600', '300'],
] as const) {
  test(`nothing is accepted twice if the clock tolerance changes from ${was} to ${becomes} seconds`, async () => {
    await using na = await startTestAuthority({ environment: tolerance(was) });
    const operation = operatorRequest(na, '/admin/invite');
    assert.equal(outcome(await sendSigned(na, operation)), '200');
    await na.stop();
    const { dataDir, clock } = na;
    await using other = await startTestAuthority({
      ...{ dataDir, clock },
      environment: tolerance(becomes),
    });
    clock.advance(125 * MINUTE);
    await tick(other);
    await setClock(other, -125 * MINUTE);
    assert.equal(outcome(await sendSigned(other, operation)), '401 admin_auth_failed');
  });
}

/** Starts another authority on what a kill would have left on the disk at this moment, with the same clock. */
async function afterKill(
  { dataDir, clock }: TestAuthority,
  options: TestOptions = {},
): Promise<TestAuthority> {
  const copy = scratchFolder('mesh-na-killed-');
  after(copy.remove);
  const left = join(copy.path, 'data');
  cpSync(dataDir, left, { recursive: true });
  return startTestAuthority({ ...options, dataDir: left, clock });
}

test(
  'a heartbeat signed ahead is not accepted twice if the tolerance is raised after a crash',
  LMDB_ONLY,
  async () => {
    await using na = await startTestAuthority({ environment: tolerance('300') });
    const node = await joinedNode(na);
    await na.flush();
    const beat = signedBeat(na, node, 4 * MINUTE);
    assert.equal(outcome(await sendSigned(na, beat)), '200');
    await using again = await afterKill(na, { environment: tolerance('3600') });
    na.clock.advance(3 * SECOND);
    assert.equal(outcome(await sendSigned(again, beat)), '401 node_auth_failed');
  },
);

test('nonces are discarded once both clocks have passed them', async () => {
  const at = { wall: 20 * MINUTE, elapsed: 0 };
  const ledger = createNonceLedger(TOLERANCE, () => at.elapsed);
  const { forgetAt } = ledger.spend('scope', 'nonce', at.wall);
  const ahead = at.wall + 60 * MINUTE;
  assert.equal(ledger.forget(ahead) <= Math.ceil(forgetAt / MINUTE) * MINUTE, true);
  assert.equal(ledger.isSpent('scope', 'nonce'), true);
  at.elapsed = 60 * MINUTE;
  assert.equal(ledger.forget(at.wall), at.wall);
  assert.equal(ledger.isForgotten(at.wall), false);
  assert.equal(ledger.isSpent('scope', 'nonce'), true);
  assert.equal(ledger.forget(ahead), ahead);
  assert.equal(ledger.isSpent('scope', 'nonce'), false);
  assert.equal(ledger.isForgotten(at.wall), true);
  assert.equal(ledger.isForgotten(at.wall + 1), false);
});

test('one heartbeat under a clock a day ahead leaves no one active for a day', async () => {
  await using na = await startTestAuthority();
  const [one, other] = [await joinedNode(na), await joinedNode(na)];
  await setClock(na, DAY);
  assert.equal(outcome(await heartbeat(na, one)), '200');
  await setClock(na, -DAY);
  for (const node of [one, other]) assert.equal(outcome(await heartbeat(na, node)), '200');
  assert.equal((await get(na, '/nodes')).body.count, 2);
  na.clock.advance(6 * MINUTE);
  assert.equal((await get(na, '/nodes')).body.count, 0);
});

test('a heartbeat under a clock a day ahead does not count for a day if the clock is corrected while the service is stopped', async () => {
  await using na = await startTestAuthority();
  const node = await joinedNode(na);
  await setClock(na, DAY);
  assert.equal(outcome(await heartbeat(na, node)), '200');
  const ahead = signedBeat(na, node);
  assert.equal(outcome(await sendSigned(na, ahead)), '200');
  await na.stop();
  na.clock.step(-DAY);
  await using right = await na.restart();
  na.clock.advance(SECOND);
  assert.equal(outcome(await heartbeat(right, node)), '200');
  na.clock.advance(6 * MINUTE);
  assert.equal((await get(right, '/nodes')).body.count, 0);
});

test('clock steps are logged, counted and shown, and followed once they have lasted', async () => {
  await using na = await startTestAuthority();
  const before = await clockOf(na);
  na.clock.step(90 * MINUTE);
  await tick(na);
  assert.equal(await clockOf(na, 90 * MINUTE), before + SECOND);
  const shown = (await get(na, '/metrics')).text;
  assert.match(shown, /^mesh_na_clock_steps_total\{direction="forward"\} 1$/m);
  assert.match(shown, /^mesh_na_clock_skew_seconds 5400$/m);
  for (let i = 0; i < 10; i += 1) await tick(na);
  assert.equal(await clockOf(na), before + 11 * SECOND + 90 * MINUTE);
  assert.match((await get(na, '/metrics')).text, /^mesh_na_clock_skew_seconds 0$/m);
  const outcomes = na.logLines.filter((line) => line.includes('mesh.clock'));
  assert.equal(outcomes.length, 2);
  assert.match(
    outcomes[0] ?? '',
    /WARNING mesh.clock The system clock was set forward by 5400.0 s/,
  );
  assert.match(outcomes[1] ?? '', /The service follows a clock that was set forward by 5400.0 s/);
});

test('small corrections of the clock are followed at once, and are not steps', async () => {
  await using na = await startTestAuthority();
  const before = await clockOf(na);
  na.clock.step(-400);
  await tick(na);
  assert.equal(await clockOf(na), before + SECOND - 400);
  // With a first value, the alert sees the first step.
  for (const direction of ['forward', 'back']) {
    assert.equal(await metricOf(na, `mesh_na_clock_steps_total{direction="${direction}"}`), 0);
  }
});

test('no one waits longer than a window after the clock was set back', async () => {
  await using na = await startTestAuthority({ environment: { MESH_RATE_LIMIT_ADMIN: '2/60' } });
  for (let i = 0; i < 2; i += 1) await operate(na, '/admin/invite');
  await setClock(na, -12 * MINUTE);
  const limited = await operate(na, '/admin/invite');
  assert.equal(outcome(limited), '429 rate_limit_exceeded');
  assert.equal(limited.headers.get('retry-after'), '60');
  na.clock.advance(MINUTE);
  assert.equal(outcome(await operate(na, '/admin/invite')), '200');
});

test(
  'heartbeats lost in a kill are not accepted again after the next start, nor after a clean stop',
  LMDB_ONLY,
  async () => {
    await using na = await startTestAuthority();
    const [node, ahead] = [await joinedNode(na), await joinedNode(na)];
    const session = await openSession(na, await joinedNode(na));
    const ofAhead = await openSession(na, await joinedNode(na));
    // Each is later than the signed heartbeat that began the session.
    const now = na.clock.now();
    const inSessions = [
      ...[1, 2, 3].map((ms) => [session, { instant: formatInstant(now + ms) }] as const),
      [ofAhead, { instant: formatInstant(now + 4 * MINUTE) }] as const,
    ];
    for (const [one, call] of inSessions) {
      assert.equal(outcome(await beat(na, one, call)), '200');
    }
    const beats = [
      signedBeat(na, node),
      ...[0, 1, 30, 200].map((seconds) => signedBeat(na, ahead, seconds * SECOND)),
    ];
    for (const beat of beats) assert.equal(outcome(await sendSigned(na, beat)), '200');

    await using second = await afterKill(na);
    na.clock.advance(3 * SECOND);
    for (const beat of beats) {
      assert.equal(outcome(await sendSigned(second, beat)), '401 node_auth_failed');
    }
    for (const [one, call] of inSessions) {
      assert.equal(outcome(await beat(second, one, call)), '401 session_ended');
    }
    assert.equal(outcome(await beat(second, session)), '200', 'a session goes on');
    assert.equal(outcome(await heartbeat(second, ahead)), '200');

    await using third = await second.restart();
    na.clock.advance(3 * SECOND);
    for (const beat of beats) {
      assert.equal(outcome(await sendSigned(third, beat)), '401 node_auth_failed');
    }
    assert.equal(outcome(await heartbeat(third, node)), '200');
  },
);

test(
  'heartbeats are not accepted again after a kill under a clock that was set back meanwhile',
  LMDB_ONLY,
  async () => {
    await using first = await startTestAuthority();
    const node = await joinedNode(first);
    await first.stop();
    first.clock.step(MINUTE);
    await using second = await first.restart();
    const beats = Array.from({ length: 3 }, () => signedBeat(second, node));
    for (const beat of beats) assert.equal(outcome(await sendSigned(second, beat)), '200');
    first.clock.step(-MINUTE);
    await using third = await afterKill(second);
    for (const beat of beats) {
      assert.equal(outcome(await sendSigned(third, beat)), '401 node_auth_failed');
    }
    // Only the last moments before the kill are uncertain: the clocks of nodes have advanced.
    const later = signedBeat(third, node, MINUTE + 3 * SECOND);
    assert.equal(outcome(await sendSigned(third, later)), '200');
  },
);

test('after a silence, heartbeats wait for the disk only until a new range of times is stored, which begins at once', async () => {
  await using na = await startTestAuthority({ environment: { MESH_LIVENESS_FLUSH_MS: '60000' } });
  const node = await joinedNode(na);
  na.clock.advance(HOUR);
  await na.renewLists();
  const commits = await storedTimes(na, 'commit');
  const ranges = await storedTimes(na, 'liveness_flush');
  assert.equal(outcome(await heartbeat(na, node)), '200');
  assert.equal(await storedTimes(na, 'commit'), commits + 1);
  // A flush stores nothing more, and ends after the range that has begun is on disk.
  await na.flush();
  assert.equal(await storedTimes(na, 'liveness_flush'), ranges + 1);
  na.clock.advance(MINUTE);
  for (let beats = 0; beats < 3; beats += 1) {
    assert.equal(outcome(await heartbeat(na, node)), '200');
  }
  assert.equal(await storedTimes(na, 'commit'), commits + 1);
  assert.equal(await storedTimes(na, 'liveness_flush'), ranges + 1);
});

test('no range is stored for a heartbeat that was signed ahead of the clock', async () => {
  await using na = await startTestAuthority({ environment: { MESH_LIVENESS_FLUSH_MS: '60000' } });
  const node = await joinedNode(na);
  const ranges = await storedTimes(na, 'liveness_flush');
  const ahead = signedBeat(na, node, 4 * MINUTE);
  assert.equal(outcome(await sendSigned(na, ahead)), '200');
  assert.equal(outcome(await operate(na, '/admin/invite')), '200');
  assert.equal(await storedTimes(na, 'liveness_flush'), ranges);
});

/** How often work of this kind was written to the store. */
async function storedTimes(na: TestAuthority, work: string): Promise<number> {
  return (await metricOf(na, `mesh_na_store_seconds_count{work="${work}"}`)) || 0;
}

/** A connection whose request is in flight when `write` resolves. */
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
