/** Published documents: their renewal, their order, and how much work a reader can cause. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatInstant } from '../src/base/timestamp.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR } from './support/clock.ts';
import { get, joinedNode, operate, outcome } from './support/requests.ts';
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
