import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { test } from 'node:test';
import { fuzz } from './fuzz/fuzz.ts';
import { randomFrom } from './fuzz/random.ts';
import { startTestAuthority } from './support/authority.ts';

test('no mutated request gets a 500 or an incomplete envelope', async (t) => {
  const seed = randomInt(2 ** 31);
  t.diagnostic(`seed ${seed}; more: npx tsx test/fuzz/main.ts --requests 25000 --seed ${seed}`);
  await using na = await startTestAuthority({ environment: { MESH_RATE_LIMIT_VERIFY: 'off' } });
  const { sent, statuses, problems } = await fuzz(na, randomFrom(seed), 1000);
  t.diagnostic(`${sent} sent: ${JSON.stringify(Object.fromEntries(statuses))}`);
  assert.deepEqual(problems, []);
  assert.ok((statuses.get(200) ?? 0) + (statuses.get(201) ?? 0) > sent / 10, 'many are answered');
});
