/** `doctor` follows the authority through a planned change of its key, and accuses nobody. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startTestAuthority } from './support/authority.ts';
import { REAL_TIME } from './support/clock.ts';
import { runCommand } from './support/commands.ts';
import { outcome } from './support/requests.ts';
import { activated, stage, step, succession } from './support/successions.ts';

test('a planned change of the key is no man in the middle, and does not touch the first policy', async () => {
  await using na = await startTestAuthority({ clock: REAL_TIME });
  const seen = async () => {
    const args = ['doctor', '--data-dir', na.dataDir, '--url', na.url, '--json'];
    const { stdout } = await runCommand(args);
    const { checks } = JSON.parse(stdout) as { checks: { check: string; outcome: string }[] };
    return ['network', 'first_policy', 'succession', 'crl', 'feed'].map((name) =>
      checks.filter(({ check }) => check === name).map((each) => `${name} ${each.outcome}`),
    );
  };
  const well = ['network', 'first_policy', 'succession', 'crl', 'feed'].map((n) => [`${n} ok`]);
  assert.deepEqual(await seen(), well, 'before');
  const signed = await succession(na, { kind: 'planned' });
  assert.equal(outcome(await stage(na, signed)), '200');
  await activated(na);
  assert.deepEqual(await seen(), well, 'in the overlap');
  const operated = { ...na, audience: signed.statement.to_key };
  assert.equal(outcome(await step(operated, 'finish')), '200');
  assert.deepEqual(await seen(), well, 'afterward');
});
