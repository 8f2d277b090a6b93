/** The bulletin [core-5-14], and the answers to heartbeats that include it [core-4-4-1]. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, suite, test } from 'node:test';
import {
  createHeartbeatInterval,
  noticesOf,
  renewAfter,
} from '../src/authority/certificates/beat-advice.ts';
import { sha256Hex } from '../src/base/crypto/digest.ts';
import { canonicalJson } from '../src/base/json/write.ts';
import { keyFromSeed, signText, verifyText } from '../src/client/keys.ts';
import { createVerifier } from '../src/client/offline.ts';
import { singlySignedText } from '../src/protocol/records/signed-record.ts';
import { startTestAuthority } from './support/authority.ts';
import { HOUR, SECOND } from './support/clock.ts';
import { PROJECT } from './support/project.ts';
import { get, joinedNode, nodeRequest, operate, outcome } from './support/requests.ts';

suite('the bulletin', async () => {
  const na = await startTestAuthority();
  after(() => na[Symbol.asyncDispose]());
  const node = await joinedNode(na, { max_validity_hours: 168 });
  const beat = (further: object = { bulletin: true }) =>
    nodeRequest(na, '/heartbeat', node.key, { cert_id: node.certId, ...further });

  test('contains the newest versions, signed', async () => {
    await get(na, '/policy');
    const { body, text } = await get(na, '/bulletin');
    assert.equal(canonicalJson(body), text);
    assert.equal(verifyText(na.audience, singlySignedText(body), body.signature.sig), true);
    const genesis = (await get(na, '/genesis')).body;
    const delta = (await get(na, '/crl?since=0')).body;
    assert.equal(body.version, 1);
    assert.equal(body.network_name, genesis.network_name);
    assert.equal(body.genesis_digest, sha256Hex(canonicalJson(genesis)));
    assert.equal(body.crl_sequence, delta.sequence);
    assert.equal(body.crl_digest, delta.entries_digest);
    const reasonOf = (given: unknown, network = genesis.network_name) =>
      createVerifier().bulletin(given, network, na.audience);
    assert.equal(reasonOf(text), 'valid');
    assert.equal(reasonOf({ ...body, crl_sequence: 9 }), 'invalid_signature');
    assert.equal(reasonOf(text, 'another'), 'invalid_signature');
    assert.equal(reasonOf({}), 'malformed');
  });

  test('is returned to heartbeats that ask for it, the same for all, and to no others', async () => {
    na.clock.advance(2 * SECOND);
    const other = await joinedNode(na);
    const first = await beat();
    const second = await nodeRequest(na, '/heartbeat', other.key, {
      cert_id: other.certId,
      bulletin: true,
    });
    assert.deepEqual(Object.keys(first.body), [
      'ack',
      'server_time',
      'next_heartbeat_seconds',
      'renew_after',
      'notices',
      'bulletin',
    ]);
    assert.deepEqual(first.body.bulletin, second.body.bulletin);
    assert.deepEqual(first.body.bulletin, (await get(na, '/bulletin')).body);
    assert.ok(first.text.endsWith(`,"bulletin":${(await get(na, '/bulletin')).text}}`));
    for (const further of [{}, { bulletin: false }]) {
      assert.deepEqual(Object.keys((await beat(further)).body), ['ack', 'server_time']);
    }
    assert.equal(outcome(await beat({ bulletin: 'yes' })), '422 request_validation_failed');
  });

  test('changes with its subjects, and at most once a second', async () => {
    const before = (await beat()).body.bulletin;
    const doomed = await joinedNode(na);
    await operate(na, '/admin/revoke', { cert_id: doomed.certId });
    const { body: policy } = await operate(na, '/admin/policy', {});
    assert.deepEqual((await beat()).body.bulletin, before);
    na.clock.advance(SECOND);
    const now = (await beat()).body.bulletin;
    assert.equal(now.crl_sequence, before.crl_sequence + 1);
    assert.equal(now.policy_id, policy.policy_id);
    assert.ok(now.log_size > before.log_size);
    assert.equal((await get(na, '/crl')).body.sequence, now.crl_sequence);
    na.clock.advance(SECOND);
    assert.deepEqual((await beat()).body.bulletin, now, 'nothing has changed');
  });

  test('says when a node should renew, and what became of its certificate', async () => {
    const { body } = await beat();
    const { notices, renew_after } = body;
    assert.deepEqual(notices, []);
    const inHours = (Date.parse(renew_after) - na.clock.now()) / HOUR;
    assert.ok(inHours > 83 && inHours < 127, `${inHours}`);
    await nodeRequest(na, '/renew', node.key, { cert_id: node.certId });
    assert.deepEqual((await beat()).body.notices, ['superseded']);
  });
});

test('heartbeats are spread evenly, less often the more nodes there are, and after a start', () => {
  let now = 0;
  const { next } = createHeartbeatInterval(300_000, () => now);
  const some = (nodes: number) => Array.from({ length: 1000 }, () => next(nodes));
  const bounds = (seconds: number[]) => [Math.min(...seconds), Math.max(...seconds)];
  assert.deepEqual(bounds(some(1)), [50, 100]);
  const counts = new Map<number, number>();
  for (const seconds of some(1)) counts.set(seconds, (counts.get(seconds) ?? 0) + 1);
  for (const [seconds, count] of counts) {
    assert.ok(count >= 9 && count <= 22, `${count} nodes after ${seconds} s`);
  }
  now = 300_000;
  assert.deepEqual(bounds(some(1)), [27, 33]);
  assert.deepEqual(bounds(some(500_000)), [45, 55]);
  assert.deepEqual(bounds(some(10_000_000)), [82, 100]);
});

test('renewals are spread evenly over their window', () => {
  const issuedAt = Date.parse('2026-01-01T00:00:00Z');
  const life = { issuedAt, expiresAt: issuedAt + 168 * HOUR };
  const firstKey = { since: 0, overlapUntil: null, isPlanned: false };
  const bins = new Array<number>(20).fill(0);
  for (let node = 0; node < 10_000; node += 1) {
    const place = renewAfter(sha256Hex(`node ${node}`), life, firstKey) - issuedAt;
    const bin = Math.floor((place / HOUR - 84) / (42 / 20));
    bins[bin] = (bins[bin] ?? 0) + 1;
  }
  assert.equal(bins.length, 20);
  const chiSquared = bins.reduce((sum, count) => sum + (count - 500) ** 2 / 500, 0);
  assert.ok(chiSquared < 43.8, `${chiSquared} exceeds what is likely in one of a thousand runs`);
});

test('a certificate signed by an earlier authority key is renewed early, within the overlap if there is one', () => {
  const issuedAt = Date.parse('2026-01-01T00:00:00Z');
  const life = { issuedAt, expiresAt: issuedAt + 168 * HOUR };
  const middle = '80000000';
  const since = issuedAt + 1;
  const placeIn = (overlapHours: number | null, isPlanned = overlapHours !== null) => {
    const overlapUntil = overlapHours === null ? null : since + overlapHours * HOUR;
    return (renewAfter(middle, life, { since, overlapUntil, isPlanned }) - since) / HOUR;
  };
  assert.equal(placeIn(null), 1 / 2);
  assert.equal(placeIn(40), (40 * 0.75) / 2);
  const firstKey = { since: 0, overlapUntil: null, isPlanned: false };
  const due = (renewAfter(middle, life, firstKey) - since) / HOUR;
  assert.equal(placeIn((due / 0.75) * 1.01), due, 'due within the window');
  assert.equal(placeIn(14 * 24), due);
  assert.equal(placeIn(null, true), due, 'what an earlier key signed still counts');
  const signedByBoth = { since: issuedAt, overlapUntil: issuedAt + HOUR, isPlanned: true };
  assert.equal((renewAfter(middle, life, signedByBoth) - since) / HOUR, due);
});

test('a certificate expires soon once its renewal window is over', () => {
  const certificate = { issuedAt: 0, expiresAt: 100, renewedAt: null };
  assert.deepEqual(noticesOf(certificate, 74), []);
  assert.deepEqual(noticesOf(certificate, 75), ['certificate_expires_soon']);
  assert.deepEqual(noticesOf({ ...certificate, renewedAt: 1 }, 75), [
    'certificate_expires_soon',
    'superseded',
  ]);
});

test('the vectors of a bulletin are valid', async () => {
  const { bulletin: vector } = JSON.parse(
    readFileSync(new URL('test/vectors/fleet.json', PROJECT), 'utf8'),
  ).vectors;
  const key = keyFromSeed(Uint8Array.from({ length: 32 }, (_, index) => index));
  const bulletin = JSON.parse(vector.bulletin);
  assert.equal(canonicalJson(bulletin), vector.bulletin);
  assert.equal(singlySignedText(bulletin), vector.signed_text);
  assert.equal(await signText(key, vector.signed_text), bulletin.signature.sig);
  const reasonOf = (given: unknown) => createVerifier().bulletin(given, 'net-a', key.publicKey);
  assert.equal(reasonOf(vector.bulletin), 'valid');
  const withDigest = JSON.parse(vector.with_digest);
  assert.equal(canonicalJson(withDigest), vector.with_digest);
  assert.equal(reasonOf(withDigest), 'valid');
  assert.equal(reasonOf({ ...withDigest, authority_keys_digest: 'ab'.repeat(32) }), 'valid');
  assert.equal(reasonOf({ ...withDigest, authority_keys_digest: 'none' }), 'malformed');
  assert.equal(reasonOf({ ...withDigest, log_size: 13 }), 'invalid_signature');
});
