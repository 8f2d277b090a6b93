/** A short form of `npm run chaos`: the least expensive faults, on real processes under load. */
import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { type Deployment, deploy } from './chaos/deployment.ts';
import { FAULTS, type Fault, PLANTED } from './chaos/faults.ts';
import { createLedger, type Ledger } from './chaos/ledger.ts';
import { type Load, startLoad } from './chaos/load.ts';
import { playFault, type Seen } from './chaos/rounds.ts';

const SHORT = { suspended: 2000, cut: 1000, withoutDatabase: 3000, slow: 1000 };
/** The lease is long enough for a busy machine to renew it in time. */
const LEASE_MS = 1500;

suite('three instances behind a balancer, on a primary and a standby, under load', () => {
  let deployment: Deployment;
  let ledger: Ledger;
  let load: Load;
  before(async () => {
    deployment = await deploy(LEASE_MS);
    ledger = createLedger();
    load = startLoad(deployment, ledger);
  });
  after(async () => {
    await load.stop();
    await deployment[Symbol.asyncDispose]();
  });

  function play(fault: Fault): Promise<Seen> {
    return playFault(fault, deployment, SHORT, load, ledger);
  }

  for (const name of ['active-killed', 'primary-killed']) {
    test(`lose nothing, do nothing twice and serve nothing outdated: ${name}`, async () => {
      const fault = FAULTS.find((one) => one.name === name);
      assert.ok(fault !== undefined);
      const seen = await play(fault);
      assert.deepEqual(seen.violations, []);
      assert.ok(seen.acknowledged > 0);
    });
  }

  test('lose changes, and it is noticed, if commits wait for no standby and a lagging one is promoted', async () => {
    const { violations } = await play(PLANTED);
    assert.ok(
      violations.some((violation) => violation.startsWith('lost: ')),
      violations.join('\n'),
    );
  });
});
