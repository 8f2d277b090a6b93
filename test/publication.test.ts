/** What is published: by whom it is renewed, in what order it lists, and how much work a reader can cause. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startTestAuthority } from './support/authority.ts';
import { get, outcome } from './support/requests.ts';
import { importFeed, sovereign } from './support/trust.ts';

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
