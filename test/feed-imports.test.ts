/** Imports of long feeds: bounded, indexed in slices, stored in full, and unchanged by a restart. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createImportedFeeds } from '../src/authority/recognition/imported-feeds.ts';
import { createRecognitionIndex } from '../src/authority/recognition/recognition-index.ts';
import { systemRuntime } from '../src/base/runtime.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { networkFolder } from './support/folders.ts';
import { get, newKey, outcome } from './support/requests.ts';
import { openSimulatedNetwork } from './support/simulated-network.ts';
import { loadAll } from './support/stored.ts';
import { openStoreOf } from './support/test-stores.ts';
import { importFeed, post, type Sovereign, sovereign } from './support/trust.ts';

const idsFrom = (start: number, count: number) =>
  Array.from({ length: count }, (_, n) => `id-${String(start + n).padStart(6, '0')}`);

function importIds(na: TestAuthority, { key, feed }: Sovereign, sequence: number, ids: string[]) {
  const reasons = { [ids[0] ?? '']: `said by ${sequence}` };
  const changes = { revoked_attestation_ids: ids, revocation_reasons: reasons };
  const rest = { issuer_public_keys: [key.publicKey] };
  return importFeed(na, feed(na.clock.now(), sequence, changes), rest);
}

async function blastRadius(na: TestAuthority) {
  const { body } = await get(na, '/connectome.json');
  assert.equal(body.summary.imported_revocation_count, body.revocation_blast_radius.length);
  return body.revocation_blast_radius as { id: string; sequence: number; reason: string | null }[];
}

async function storedImports(na: TestAuthority): Promise<number> {
  const store = await openStoreOf(na);
  const { subjects } = await loadAll(store);
  await store.close();
  return subjects.filter(({ kind }) => kind.startsWith('revocation-import')).length;
}

test('a feed of 20,000 ids is one stored subject, revoked all at once, and the same after a restart', async () => {
  await using na = await startTestAuthority();
  const beta = sovereign('beta');
  const ids = idsFrom(0, 20_000);
  assert.equal(outcome(await importIds(na, beta, 1, ids)), '200');
  const before = (await get(na, '/connectome.json')).text;
  assert.deepEqual(
    (await blastRadius(na)).map(({ id }) => id),
    ids,
  );
  await na.stop();
  assert.equal(await storedImports(na), 1);
  await using again = await na.restart();
  assert.equal((await get(again, '/connectome.json')).text, before);
});

test('a later import updates the ids it names, keeps the others, and replaces what it covers', async () => {
  await using na = await startTestAuthority();
  const beta = sovereign('beta');
  await importIds(na, beta, 1, idsFrom(0, 3000));
  await importIds(na, beta, 2, idsFrom(2000, 3000));
  let rows = await blastRadius(na);
  assert.equal(rows.length, 5000);
  assert.deepEqual(
    [rows[0]?.sequence, rows[1999]?.sequence, rows[2000]?.sequence, rows[2000]?.reason],
    [1, 1, 2, 'said by 2'],
  );
  for (const sequence of [3, 4, 5, 6]) await importIds(na, beta, sequence, idsFrom(0, 5000));
  rows = await blastRadius(na);
  assert.equal(rows.length, 5000);
  assert.ok(rows.every(({ sequence }) => sequence === 6));
  const before = (await get(na, '/connectome.json')).text;
  await na.stop();
  assert.ok((await storedImports(na)) <= 3, 'imports that later ones cover give their place back');
  await using again = await na.restart();
  assert.equal((await get(again, '/connectome.json')).text, before);
});

test('concurrent long imports of one issuer end with every id revoked', async () => {
  await using na = await startTestAuthority();
  const beta = sovereign('beta');
  const sequences = [1, 2, 3, 4, 5];
  const answers = await Promise.all(
    sequences.map((sequence) => importIds(na, beta, sequence, idsFrom(sequence * 1000, 4500))),
  );
  const imported = sequences.filter((_, index) => answers[index]?.status === 200);
  const expected = new Set(imported.flatMap((sequence) => idsFrom(sequence * 1000, 4500)));
  assert.deepEqual(
    (await blastRadius(na)).map(({ id }) => id),
    [...expected].sort(),
  );
  const before = (await get(na, '/connectome.json')).text;
  await using again = await na.restart();
  assert.equal((await get(again, '/connectome.json')).text, before);
});

test('MESH_MAX_FEED_ENTRIES bounds an import; the feed is refused as malformed', async () => {
  await using na = await startTestAuthority({ environment: { MESH_MAX_FEED_ENTRIES: '10' } });
  const beta = sovereign('beta');
  assert.equal(
    outcome(await importIds(na, beta, 1, idsFrom(0, 11))),
    '400 invalid_sovereign_revocation_feed',
  );
  assert.equal(outcome(await importIds(na, beta, 1, idsFrom(0, 10))), '200');
});

test('an import takes effect only when it is complete, and other work proceeds meanwhile', async () => {
  const index = createRecognitionIndex();
  const imports = createImportedFeeds(index, () => undefined);
  imports.endLoading();
  const rows = Array.from({ length: 20 }, (_, slice) =>
    JSON.stringify(idsFrom(slice * 2000, 2000).map((id) => [id, null])),
  );
  const stored = { issuer: 'beta', feedId: 'f', sequence: '1', revokedAt: 0, rows };
  let done = false;
  const work = imports.absorb(imports.takeSlot('beta'), stored)?.then(() => {
    done = true;
  });
  let turns = 0;
  for (; !done; turns += 1) {
    assert.equal(index.isRevoked('beta', 'id-000000'), index.isRevoked('beta', 'id-039999'));
    assert.equal(index.revokedBy('beta').length, index.revocationCount());
    await new Promise(setImmediate);
  }
  await work;
  assert.ok(turns >= 15, `${turns} turns of others`);
  assert.equal(index.revocationCount(), 40_000);
  assert.equal(index.isRevoked('beta', 'id-039999'), true);
});

test('a treaty lends its keys to no feed once its revocation is decided', async () => {
  await using folder = networkFolder('simulated');
  const na = await openSimulatedNetwork(folder.path, { now: systemRuntime.now(), elapsed: 0 });
  const key = newKey().publicKey;
  const issued = await na.order('issueTreaty', {
    issuer_sovereign_id: null,
    endpoint: null,
    subject_sovereign_id: 'beta',
    subject_public_keys: [key],
    scope: { allowed_roles: [], accepted_statuses: ['active'], claims: {} },
    validity_hours: 1,
    metadata: {},
  });
  assert.ok(issued.ok);
  const imported = (sequence: number) =>
    na.order('importFeed', {
      feedId: 'f',
      issuer: 'beta',
      sequence,
      revokedCount: 1,
      rows: ['[["a",null]]'],
      isSigned: true,
      verifiedUnder: key,
      issuer_public_keys: null,
      expected_issuer_sovereign_id: null,
    });
  const before = await imported(1);
  assert.ok(before.ok);
  const { treaty_id } = JSON.parse(issued.json);
  const revoking = na.order('revokeTreaty', { treaty_id, reason: 'stolen' });
  const during = await imported(2);
  assert.ok(!during.ok && during.refusal === 'missing_issuer_public_keys');
  await revoking;
  await na.close();
});

test('the graph documents agree while a feed is imported and treaties are read', async () => {
  await using na = await startTestAuthority();
  const beta = sovereign('beta');
  const importing = importIds(na, beta, 1, idsFrom(0, 15_000));
  for (let i = 0; i < 10; i += 1) {
    const { body } = await get(na, '/connectome.json');
    const { imported_revocation_count: count } = body.summary;
    assert.ok(count === 0 || count === 15_000, `${count} are revoked`);
    assert.equal(body.revocation_blast_radius.length, count);
  }
  assert.equal(outcome(await importing), '200');
  assert.equal((await blastRadius(na)).length, 15_000);
  const attestation = beta.attestation(na.clock.now(), { attestation_id: 'id-000007' });
  const treaty = sovereign('alpha').treaty(na.clock.now(), beta);
  const verdict = await post(na, '/attestations/verify-with-treaty', { attestation, treaty });
  assert.equal(verdict.status, 200);
});
