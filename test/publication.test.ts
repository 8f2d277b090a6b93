/** Published documents: their renewal, their order, and how much work a reader can cause; and the bulletin about them. */

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
import { formatInstant } from '../src/base/timestamp.ts';
import { keyFromSeed, signText, verifyText } from '../src/client/keys.ts';
import { createVerifier } from '../src/client/offline.ts';
import { singlySignedText } from '../src/protocol/records/signed-record.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR, SECOND, setClock } from './support/clock.ts';
import { PROJECT } from './support/project.ts';
import { get, joinedNode, nodeRequest, operate, outcome } from './support/requests.ts';
import { loadAll } from './support/stored.ts';
import { openStoreOf } from './support/test-stores.ts';
import {
  attest,
  importFeed,
  issued,
  parsed,
  revokeAttestation,
  sovereign,
  verifies,
} from './support/trust.ts';

const HALF_DAY = 12 * HOUR;
const FEED = '/sovereign-revocation-feed';
const LISTS = ['/crl', FEED, `${FEED}?issuer_sovereign_id=beta`];

/** An authority with one entry in each of its lists. */
async function startWithEntries(listThreadFrom?: number): Promise<TestAuthority> {
  const na = await startTestAuthority(listThreadFrom === undefined ? {} : { listThreadFrom });
  const node = await joinedNode(na);
  await operate(na, '/admin/revoke', { cert_id: node.certId });
  for (const issuer_sovereign_id of ['alpha', 'beta']) {
    const { attestation_id } = await issued(attest(na, { issuer_sovereign_id }));
    await revokeAttestation(na, attestation_id, { reason: 'Zürich ✓' });
  }
  return na;
}

/** Changes the facts of a stored subject, by default the first one of its kind. */
async function alterStored(
  na: TestAuthority,
  kind: string,
  id: string | null,
  facts: object,
): Promise<void> {
  const store = await openStoreOf(na);
  const found = (await loadAll(store)).subjects.find(
    (row) => row.kind === kind && row.id === (id ?? row.id),
  );
  assert.ok(found);
  const { version, snapshot } = found;
  const altered = { ...snapshot, context: { ...snapshot.context, ...facts } };
  const write = { ...found, version: version + 1, replaces: version, snapshot: altered };
  await store.commit({ subjects: [write], removals: [], nonces: [], audit: [] });
  await store.close();
}

for (const listThreadFrom of [undefined, 0]) {
  const how = listThreadFrom === undefined ? '' : ', also by the thread that makes long ones';
  test(`every list is reissued when half its time is over, without a reader${how}`, async () => {
    await using na = await startWithEntries(listThreadFrom);
    const seen = new Map<string, string>();
    let authority: TestAuthority = na;
    for (let half = 0; half < 4; half += 1) {
      for (const path of LISTS) {
        const answer = await get(authority, path);
        const { body } = answer;
        assert.equal(body.sequence, 1 + half, path);
        assert.equal(body.issued_at, formatInstant(na.clock.now()));
        assert.equal((body.revoked_attestation_ids ?? body.revoked_certificates).length, 1);
        assert.ok(verifies(parsed(answer), na.audience));
        const key = `${path} ${body.sequence}`;
        assert.equal(seen.get(key) ?? answer.text, answer.text, 'a sequence names one content');
        seen.set(key, answer.text);
      }
      if (half === 1) authority = await authority.restart();
      for (const path of LISTS) {
        assert.equal((await get(authority, path)).text, seen.get(`${path} ${1 + half}`));
      }
      na.clock.advance(HALF_DAY - 1);
      await authority.renewLists();
      for (const path of LISTS) {
        assert.equal((await get(authority, path)).text, seen.get(`${path} ${1 + half}`));
      }
      na.clock.advance(1);
      await authority.renewLists();
      // The clock is set back so that no read makes the next version due.
      na.clock.advance(-1);
      for (const path of LISTS) assert.equal((await get(authority, path)).body.sequence, 2 + half);
      na.clock.advance(1);
    }
    await authority.stop();
  });
}

test('a list that lapsed while the authority was down is reissued at the start', async () => {
  await using na = await startWithEntries();
  const before = await Promise.all(LISTS.map((path) => get(na, path)));
  await na.stop();
  na.clock.advance(30 * HALF_DAY);
  await using again = await na.restart();
  for (const [index, path] of LISTS.entries()) {
    const { body } = await get(again, path);
    assert.equal(body.sequence, before[index]?.body.sequence + 1);
    assert.equal(body.issued_at, formatInstant(na.clock.now()));
  }
});

test('the first reader of a lapsed list has it reissued, once for all readers', async () => {
  await using na = await startWithEntries();
  na.clock.advance(HALF_DAY);
  for (const path of LISTS) {
    const texts = await Promise.all(Array.from({ length: 10 }, () => get(na, path)));
    assert.equal(new Set(texts.map(({ text }) => text)).size, 1);
    assert.equal(texts[0]?.body.sequence, 2);
  }
});

test('our own feed is reissued while it is empty, and a feed under an unknown name is not stored', async () => {
  await using na = await startTestAuthority();
  const own = (await get(na, FEED)).body;
  assert.deepEqual([own.sequence, own.issued_at], [0, formatInstant(na.clock.now())]);
  const invented = (await get(na, LISTS[2] ?? '')).text;
  na.clock.advance(HALF_DAY);
  await na.renewLists();
  const later = (await get(na, FEED)).body;
  assert.deepEqual([later.sequence, later.issued_at], [1, formatInstant(na.clock.now())]);
  assert.deepEqual(later.revoked_attestation_ids, []);
  assert.equal((await get(na, LISTS[2] ?? '')).text, invented);
  await na.stop();
  const store = await openStoreOf(na);
  const stored = (await loadAll(store)).subjects.filter(({ kind }) => kind === 'sovereign-feed');
  await store.close();
  assert.equal(stored.length, 1);
});

for (const [name, alter] of [
  ['reason', { revocationReason: 'other' }],
  ['issuer', { issuer: 'gamma' }],
] as const) {
  test(`a feed is not served again if the ${name} of an entry is not what was signed`, async () => {
    await using na = await startWithEntries();
    await na.stop();
    await alterStored(na, 'attestation', null, alter);
    await assert.rejects(
      na.restart(),
      /damaged: its revoked attestations are not those of the published feed of (alpha|beta|gamma); restore it from a backup$/,
    );
  });
}

test('the age of an imported feed is not negative, although the clock was set back since', async () => {
  await using na = await startTestAuthority();
  const { key, feed } = sovereign('beta');
  const rest = { issuer_public_keys: [key.publicKey] };
  assert.equal(outcome(await importFeed(na, feed(na.clock.now(), 1), rest)), '200');
  await setClock(na, -2 * HOUR);
  const [row] = (await get(na, '/dashboard.json')).body.revocation_feeds;
  assert.deepEqual([row.age_hours, row.freshness], [0, 'fresh']);
});

test('the dashboard lists imported feeds by issuer, and in the same order after a restart', async () => {
  await using na = await startTestAuthority();
  for (const name of ['zeta', 'beta', 'Omega', 'éta']) {
    const { key, feed } = sovereign(name);
    const rest = { issuer_public_keys: [key.publicKey] };
    assert.equal(outcome(await importFeed(na, feed(na.clock.now(), 1), rest)), '200');
  }
  const issuers = async (from: { readonly url: string }) =>
    (await get(from, '/dashboard.json')).body.revocation_feeds.map(
      (row: { issuer_sovereign_id: string }) => row.issuer_sovereign_id,
    );
  assert.deepEqual(await issuers(na), ['Omega', 'beta', 'zeta', 'éta']);
  await using again = await na.restart();
  assert.deepEqual(await issuers(again), ['Omega', 'beta', 'zeta', 'éta']);
});

// The bulletin [core-5-14], and the answers to heartbeats that include it [core-4-4-1].

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
