/** Heartbeat sessions [core-3-4]. */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import fc from 'fast-check';
import nacl from 'tweetnacl';
import { signerFromSeed, verifySignature } from '../src/base/crypto/ed25519.ts';
import { hmacSha256Into, LONGEST_HMAC_TEXT } from '../src/base/crypto/hmac.ts';
import { systemRuntime } from '../src/base/runtime.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { createHeartbeatSessions as createNodeSessions } from '../src/client/heartbeat-sessions.ts';
import { createNodeClient } from '../src/client/node-client.ts';
import { createHeartbeatSessions, sessionBoxKeys } from '../src/edge/auth/session.ts';
import { SESSION_LABEL, sessionBoxText, sessionText } from '../src/protocol/heartbeat-session.ts';
import { derivedSecret, networkDigest } from '../src/server/forward/keys.ts';
import { sharedAuthority, startTestAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR, MINUTE } from './support/clock.ts';
import { respelled } from './support/hostile.ts';
import { metricOf } from './support/metrics.ts';
import { PROJECT } from './support/project.ts';
import {
  auditEvents,
  heartbeat,
  joinedNode,
  newKey,
  nodeRequest,
  operate,
  outcome,
  type TestNode,
} from './support/requests.ts';
import {
  askForSession,
  type BeatCall,
  beat,
  beatBody,
  bytes,
  openSession,
  type TestSession,
} from './support/sessions.ts';
import { asKey } from './support/signing.ts';
import { activated, stage, succession } from './support/successions.ts';

const shared = sharedAuthority();

const ENDED = '401 session_ended';
const TOLERANCE = 5 * MINUTE;

async function rosterRow(na: TestAuthority, { certId }: TestNode) {
  const { body } = await operate(na, '/nodes', undefined, { method: 'GET', operator: na.standard });
  return body.nodes[certId];
}

test('a signed heartbeat begins a session, in which heartbeats count like signed ones', async () => {
  const na = await shared();
  const node = await joinedNode(na);
  const session = await openSession(na, node);
  const { offer } = session;
  const text = `mesh-na session box 1\n${offer.public_key}`;
  assert.equal(verifySignature(na.audience, text, offer.signature), true);
  assert.equal(offer.expires_at, formatInstant(na.clock.now() - 1 + HOUR));

  const body = { ...beatBody(session), status: 'degraded' };
  const answer = await beat(na, session, { body });
  assert.deepEqual(answer.body, { ack: true, server_time: formatInstant(na.clock.now()) });
  const row = await rosterRow(na, node);
  assert.deepEqual([row.status, row.last_heartbeat], ['degraded', formatInstant(na.clock.now())]);

  na.clock.advance(1);
  const informed = await beat(na, session, { body: { ...beatBody(session), bulletin: true } });
  assert.deepEqual(Object.keys(informed.body).slice(-2), ['notices', 'bulletin']);
  na.clock.advance(1);
  const asking = { ...beatBody(session), session_public_key: session.offer.public_key };
  assert.deepEqual(
    Object.keys((await beat(na, session, { body: asking })).body),
    ['ack', 'server_time'],
    'a session begins with a signature only',
  );
});

test('the answer with a bulletin has the session after it', async () => {
  const na = await shared();
  const sessionKey = Buffer.from(nacl.box.keyPair().publicKey).toString('base64');
  const answer = await askForSession(na, await joinedNode(na), sessionKey, { bulletin: true });
  assert.deepEqual(Object.keys(answer.body).slice(-2), ['bulletin', 'session']);
});

test('a heartbeat that does not belong to the session is refused, and changes nothing', async () => {
  await using na = await startTestAuthority({
    environment: { MESH_RATE_LIMIT_NODE_FAILURES: '1/60' },
  });
  const session = await openSession(na, await joinedNode(na));
  const neighbor = await openSession(na, await joinedNode(na));
  na.clock.advance(1);
  const now = na.clock.now();
  const before = await rosterRow(na, session.node);
  const audited = auditEvents(na).length;
  const beaten = await beat(na, neighbor);
  assert.equal(outcome(beaten), '200');

  const part = (at: number, change: (text: string) => string) => (header: string) =>
    header
      .split(' ')
      .map((text, index) => (index === at ? change(text) : text))
      .join(' ');
  const cases: [string, BeatCall][] = [
    ['of another version', { alter: part(0, () => 'v2') }],
    ['with a part more', { alter: (header) => `${header} x` }],
    ['with a part less', { alter: (header) => header.split(' ').slice(0, 3).join(' ') }],
    ['with two blanks', { alter: (header) => header.replace(' ', '  ') }],
    ['that is too long', { alter: (header) => `${header}${'x'.repeat(200)}` }],
    ['of garbage', { alter: () => 'x' }],
    ['whose end was moved', { alter: part(1, () => formatInstant(now + 2 * HOUR)) }],
    ['whose end is no time', { expiresAt: 'never' }],
    ['whose instant was moved', { alter: part(2, () => formatInstant(now + 1)) }],
    ['whose instant is no time', { instant: 'now' }],
    ['too old', { instant: formatInstant(now - TOLERANCE - 1) }],
    ['too far ahead', { instant: formatInstant(now + TOLERANCE + 1) }],
    ['no later than the signed one', { instant: formatInstant(now - 3) }],
    ['whose MAC is another text for the same bytes', { alter: part(3, respelled) }],
    ['whose MAC is zero', { alter: part(3, () => `${'A'.repeat(43)}=`) }],
    ['whose body was changed', { body: { ...beatBody(session), status: 'sick' }, over: '{}' }],
    ['under the key of a neighbor', { key: neighbor.key }],
    [
      'with the certificate of a neighbor',
      { body: { ...beatBody(session), cert_id: neighbor.node.certId } },
    ],
    ['for the node of a neighbor', { body: beatBody(neighbor) }],
    ['for a key that is none', { body: { ...beatBody(session), node_public_key: 'x' } }],
    ['for a long id', { body: { ...beatBody(session), cert_id: 'x'.repeat(1000) } }],
  ];
  for (const [fault, call] of cases) {
    assert.equal(outcome(await beat(na, session, call)), ENDED, fault);
  }
  assert.equal(outcome(await beat(na, neighbor, { instant: formatInstant(now) })), ENDED, 'again');

  // None of these is a failed proof of the key.
  assert.equal(auditEvents(na).length, audited);
  assert.deepEqual(await rosterRow(na, session.node), before);
  assert.equal(outcome(await beat(na, session)), '200');
  na.clock.advance(1);
  assert.equal(outcome(await heartbeat(na, session.node)), '200');
  for (const [series, expected] of [
    ['mesh_na_heartbeat_sessions_total{event="ended"}', cases.length + 1],
    ['mesh_na_heartbeat_sessions_total{event="begun"}', 2],
    ['mesh_na_heartbeats_total{proof="session"}', 2],
    ['mesh_na_heartbeats_total{proof="signature"}', 3],
  ] as const) {
    assert.equal(await metricOf(na, series), expected, series);
  }
});

test('a heartbeat in a session is refused for its certificate like a signed one', async () => {
  await using na = await startTestAuthority();
  const [first, second, third] = [await joinedNode(na), await joinedNode(na), await joinedNode(na)];
  const sessions = [];
  for (const node of [first, second, third]) sessions.push(await openSession(na, node));
  const [revoked, superseded, fine] = sessions as [TestSession, TestSession, TestSession];
  const revocation = { cert_id: first.certId, reason: 'superseded' };
  assert.equal(outcome(await operate(na, '/admin/revoke', revocation)), '200');
  assert.equal(outcome(await beat(na, revoked)), '403 certificate_revoked');
  const renewal = await nodeRequest(na, '/renew', second.key, { cert_id: second.certId });
  assert.equal(outcome(renewal), '200');
  na.clock.advance(15 * MINUTE + 1);
  assert.equal(outcome(await beat(na, superseded)), '403 certificate_superseded');
  assert.equal(outcome(await beat(na, fine)), '200');
  na.clock.advance(45 * MINUTE);
  assert.equal(outcome(await beat(na, fine)), ENDED, 'its hour is over');
});

test('a session does not outlast its certificate', async () => {
  await using na = await startTestAuthority({ environment: { MESH_HEARTBEAT_SESSION: '24h' } });
  const node = await joinedNode(na, { max_validity_hours: 1 });
  const session = await openSession(na, node);
  na.clock.advance(HOUR);
  assert.equal(outcome(await beat(na, session)), '403 certificate_expired');
});

test('only heartbeats accept a session, which alone decides there', async () => {
  const na = await shared();
  const session = await openSession(na, await joinedNode(na));
  assert.equal(outcome(await beat(na, session, { path: '/renew' })), '401 node_auth_failed');
  const header = { 'X-Mesh-Node-Proof': 'v=1; key=x; ts=x; nonce=x; sig=x' };
  assert.equal(outcome(await beat(na, session, { headers: header })), '200');
  na.clock.advance(1);
  const { key, certId } = session.node;
  const signed = await nodeRequest(na, '/heartbeat', key, { cert_id: certId });
  assert.equal(outcome(signed), '200');
});

test('a heartbeat asks for a session with a key, and gets none for a key of small order', async () => {
  const na = await shared();
  const node = await joinedNode(na);
  for (const key of [1, 'AAAA', `${'A'.repeat(42)}B=`]) {
    const answer = await askForSession(na, node, key);
    assert.equal(outcome(answer), '422 request_validation_failed', `${key}`);
  }
  const answer = await askForSession(na, node, Buffer.alloc(32).toString('base64'));
  assert.deepEqual(Object.keys(answer.body), ['ack', 'server_time']);
});

test('sessions can be turned off', async () => {
  await using na = await startTestAuthority();
  const session = await openSession(na, await joinedNode(na));
  await na.stop();
  await using off = await startTestAuthority({
    dataDir: na.dataDir,
    clock: na.clock,
    environment: { MESH_HEARTBEAT_SESSION: 'off' },
  });
  assert.equal(outcome(await beat(off, session)), ENDED);
  const answer = await askForSession(off, session.node, session.offer.public_key);
  assert.deepEqual(Object.keys(answer.body), ['ack', 'server_time']);
});

test('a session continues after a restart, and nothing that counted counts again', async () => {
  await using na = await startTestAuthority();
  const session = await openSession(na, await joinedNode(na));
  const instant = formatInstant(na.clock.now());
  assert.equal(outcome(await beat(na, session, { instant })), '200');
  await using again = await na.restart();
  assert.equal(outcome(await beat(again, session, { instant })), ENDED);
  again.clock.advance(1);
  assert.equal(outcome(await beat(again, session)), '200');
});

test('another authority key ends all sessions', async () => {
  await using na = await startTestAuthority();
  const signed = await succession(na, { activatesIn: HOUR });
  await stage(na, signed);
  na.clock.advance(HOUR - MINUTE);
  const session = await openSession(na, await joinedNode(na));
  na.clock.advance(MINUTE);
  await activated(na);
  assert.equal(outcome(await beat(na, session)), ENDED);
  const next = await openSession(na, session.node);
  const text = `mesh-na session box 1\n${next.offer.public_key}`;
  const { to_key } = signed.statement;
  assert.equal(verifySignature(to_key, text, next.offer.signature), true);
  assert.equal(outcome(await beat(na, next)), '200');
});

test('a node client uses a session, and signs when it has ended', async () => {
  await using na = await startTestAuthority();
  const { key, certId: cert_id } = await joinedNode(na);
  const kinds: string[] = [];
  const client = createNodeClient({
    url: na.url,
    key: asKey(key),
    audience: na.audience,
    now: na.clock.now,
    sessions: createNodeSessions(),
    fetch(url, init) {
      kinds.push(init.headers['X-Mesh-Session'] === undefined ? 'signed' : 'session');
      return fetch(url, init);
    },
  });
  async function kindsOf(beats: number): Promise<string> {
    kinds.length = 0;
    for (let sent = 0; sent < beats; sent += 1) await client.heartbeat({ cert_id });
    return kinds.join(' ');
  }
  assert.equal(await kindsOf(3), 'signed session session');
  na.clock.advance(27 * MINUTE);
  assert.equal(await kindsOf(1), 'session');
  na.clock.advance(27 * MINUTE);
  assert.equal(await kindsOf(2), 'signed session', 'a new one before the old one ends');
  na.clock.advance(-MINUTE);
  assert.equal(await kindsOf(2), 'session session', 'on a clock that was set back a little');
  for (const gap of [2 * HOUR, 31 * MINUTE]) {
    na.clock.advance(gap);
    assert.equal(await kindsOf(1), 'signed', 'a session for each heartbeat would cost more');
  }
  na.clock.advance(29 * MINUTE);
  assert.equal(await kindsOf(2), 'signed session');
});

test('at most 2,000 sessions begin on a thread in a second', () => {
  let now = 0;
  const runtime = { ...systemRuntime, elapsed: () => now };
  const sessions = createHeartbeatSessions({ lastsMs: HOUR, runtime });
  const sessionKey = Buffer.from(nacl.box.keyPair().publicKey).toString('base64');
  const node = { nodePublicKey: newKey().publicKey, certId: 'c' };
  const begins = () => sessions.begin(node, sessionKey, 0) !== null;
  assert.equal(begins(), false, 'without a secret');
  sessions.use({ secret: Buffer.alloc(32), signature: '' });
  assert.equal(Array.from({ length: 2001 }, begins).filter(Boolean).length, 2000);
  now = 1000;
  assert.equal(begins(), true);
});

test('the HMAC is that of Node.js', () => {
  const mac = Buffer.alloc(32);
  fc.assert(
    fc.property(
      fc.uint8Array({ minLength: 32, maxLength: 32 }),
      fc.uint8Array({ maxLength: 300 }),
      (key, text) => {
        hmacSha256Into(mac, Buffer.from(key), Buffer.from(text));
        assert.deepEqual(mac, createHmac('sha256', key).update(text).digest());
      },
    ),
  );
  assert.throws(() => hmacSha256Into(mac, mac, Buffer.alloc(LONGEST_HMAC_TEXT + 1)), RangeError);
});

test('the golden vectors', () => {
  const { secrets, session, beat: made, refused } = vectors();
  const network = networkDigest(secrets.network);
  assert.equal(network, secrets.digest);
  const authority = signerFromSeed(keyBytes(0));
  const secret = derivedSecret(authority, network, SESSION_LABEL);
  assert.equal(secret.toString('base64'), secrets.secret);
  assert.equal(sessionBoxKeys(secret).publicKey.toString('base64'), secrets.public_key);
  assert.equal(sessionBoxText(secrets.public_key), secrets.public_key_text);
  assert.equal(authority.sign(secrets.public_key_text), secrets.signature);

  const { cert_id: certId, node_public_key: nodePublicKey, expires_at } = session;
  assert.equal(sessionText({ certId, nodePublicKey, expiresAt: expires_at }), session.session_text);
  const runtime = { ...systemRuntime, randomBytes: () => bytes(session.nonce) };
  const sessions = createHeartbeatSessions({ lastsMs: HOUR, runtime });
  sessions.use({ secret, signature: secrets.signature });
  const begins = Date.parse(expires_at) - HOUR;
  const offer = sessions.begin({ certId, nodePublicKey }, session.session_public_key, begins);
  assert.deepEqual(offer, {
    key_box: session.key_box,
    nonce: session.nonce,
    public_key: secrets.public_key,
    expires_at,
    signature: secrets.signature,
  });

  function verdict(header: string, rawBody: string, now = made.now): string {
    const body = JSON.parse(rawBody);
    const given = { body, remoteAddr: '', now: Date.parse(now) };
    const raw = Buffer.from(rawBody);
    return sessions.judge(body.node_public_key, header, given, raw, TOLERANCE).verdict;
  }
  assert.equal(verdict(made.header, made.raw_body), 'valid');
  for (const { what, header, raw_body, now } of refused) {
    assert.equal(verdict(header, raw_body, now), 'session_ended', what);
  }
});

function keyBytes(from: number): Buffer {
  return Buffer.from(Array.from({ length: 32 }, (_, at) => from + at));
}

function vectors() {
  const text = readFileSync(new URL('test/vectors/heartbeat-sessions.json', PROJECT), 'utf8');
  return JSON.parse(text).vectors;
}
