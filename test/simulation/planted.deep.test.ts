/**
 * Tests the simulation itself: defects are planted around the authority, one at a time, and the simulation must detect
 * each of them. Like all histories, these are played in another process; see `assert-holds.ts`.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { on } from 'node:events';
import { after, before, suite, test } from 'node:test';
import { createVerifier } from '../../src/client/offline.ts';
import { modulePath } from '../support/project.ts';
import { forgedBy } from './forgeries.ts';
import type { Found } from './planted/planted.ts';
import { PLANTED } from './planted/tables.ts';
import { AUTHORITY, GENESIS, NETWORK } from './requests.ts';
import { describe, simulate } from './simulate.ts';

for (const [where, planted] of PLANTED) {
  suite(where, () => {
    let child: ChildProcess;
    let findings: AsyncIterator<[Found]>;
    before(() => {
      child = fork(modulePath('test/simulation/planted/main.ts'), [where]);
      findings = on(child, 'message', { close: ['disconnect'] }) as AsyncIterator<[Found]>;
    });
    after(() => child.kill());

    for (const { name, finding } of planted) {
      test(finding === null ? `${name} is harmless` : `${name} is found`, async (t) => {
        const next = await findings.next();
        assert.ok(next.done !== true, 'The process has ended early');
        const [found] = next.value;
        if (finding === null) return assert.equal(found, null);
        assert.ok(found !== null, 'All histories hold with it');
        assert.match(found.problem, finding);
        t.diagnostic(`After ${found.after} histories that hold: ${found.problem.split('\n', 1)}`);
      });
    }
  });
}

test('a finding says how to reproduce it, with the clocks under which it was found', async () => {
  const draw = { histories: 10, seed: 1, clocks: 'wrong', shrinks: false } as const;
  const finding = await simulate(draw, { store: () => assert.fail('planted') });
  assert.ok(finding !== null);
  assert.match(describe(finding), new RegExp(`--clocks wrong --seed 1 --path ${finding.path}$`));
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
