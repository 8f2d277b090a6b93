/** Tests the simulation itself: it must find each defect that is planted around the authority, one at a time. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createVerifier } from '../../src/client/offline.ts';
import { forgedBy } from './forgeries.ts';
import { AUTHORITY, GENESIS, NETWORK } from './requests.ts';
import { ofAuthority, simulate } from './simulate.ts';
import { testSuite } from './suite-tests.ts';

testSuite('defects in what is stored and judged');
testSuite('defects in the keys of the authority');
testSuite('defects in heartbeat sessions');
testSuite('defects in instances');
testSuite('defects in the heartbeat sessions of instances');

test('a finding says how to reproduce it, with the clocks under which it was found', async () => {
  const kind = ofAuthority({ clocks: 'wrong' }, { store: () => assert.fail('planted') });
  const failure = await simulate(kind, { histories: 10, seed: 1, shrinks: false });
  assert.ok(failure !== null);
  assert.match(failure.report, /--clocks wrong --seed 1 --path [\d:]+$/);
});

test('everything a thief signs counts for those who trust the stolen key', () => {
  const now = Date.UTC(2026, 3, 1);
  const key = AUTHORITY.publicKey;
  const forged = forgedBy({ from: key, distrustedFrom: now }, now);
  const { certificate, revocationList, policy, bulletin, feed, treaty } = createVerifier({
    now: () => now,
  });
  assert.equal(certificate(forged.certificate, { genesis: GENESIS, authority: key }), 'valid');
  assert.equal(revocationList(forged.crl, key), 'valid');
  assert.equal(policy(forged.policy, key), 'valid');
  assert.equal(bulletin(forged.bulletin, NETWORK, key), 'valid');
  assert.equal(feed(forged.feed, NETWORK, [key]), 'valid');
  assert.equal(treaty(forged.treaty, { issuerKeys: [key] }), 'accepted');
});
