/** Webhooks of real processes that are killed, stopped and replaced by another [events-5]: nothing is omitted. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadConfig } from '../src/server/config/load.ts';
import { NO_LIMITS, startChildServer } from './support/child-server.ts';
import { REAL_TIME } from './support/clock.ts';
import { networkFolder } from './support/folders.ts';
import { placeOf, testInstances } from './support/instances.ts';
import { indexesOf, numbers } from './support/logged-events.ts';
import { operate, outcome } from './support/requests.ts';
import { sharedCluster } from './support/shared-cluster.ts';
import { until } from './support/until.ts';
import { startReceiver } from './support/webhook-receiver.ts';

const cluster = await sharedCluster();

test('a process that is killed repeatedly while it posts omits nothing', async (t) => {
  await using folder = networkFolder('alpha');
  await using hook = await startReceiver({ authorityKey: keyIn(folder.path), now: REAL_TIME.now });
  const environment = environmentWith(hook.url);
  let logged = 0;
  for (let kills = 0; kills < 3; kills += 1) {
    await using server = await startChildServer(folder.path, { environment });
    await inviteMany(server, 150);
    logged += 150;
    await hook.until(logged - 100);
    await server.end('SIGKILL');
  }
  await using _last = await startChildServer(folder.path, { environment });
  await hook.until(logged);
  assert.deepEqual(indexesOf(hook.events), numbers(1, logged));
  assert.deepEqual(hook.refused, []);
  t.diagnostic(`${logged} events in ${hook.requests} requests, ${hook.posted - logged} twice`);
});

test('the instance that takes over continues where the previous one ended, which was killed or stopped', async (t) => {
  await using instances = await testInstances(cluster);
  const authorityKey = keyIn(instances.folder);
  await using hook = await startReceiver({ authorityKey, now: REAL_TIME.now });
  const environment = environmentWith(hook.url);
  const first = await instances.start(environment);
  const second = await instances.start(environment);
  await inviteMany(first, 150);
  await hook.until(50);
  await first.end('SIGKILL');
  await until(async () => (await placeOf(second)).ready);
  await inviteMany(second, 150);
  const third = await instances.start(environment);
  await hook.until(200);
  assert.equal((await second.end('SIGTERM')).code, 0);
  await until(async () => (await placeOf(third)).ready);
  await inviteMany(third, 10);
  await hook.until(310);
  assert.deepEqual(indexesOf(hook.events), numbers(1, 310));
  assert.deepEqual(hook.refused, []);
  t.diagnostic(`310 events in ${hook.requests} requests, ${hook.posted - 310} twice`);
});

function environmentWith(url: string) {
  return { ...NO_LIMITS, MESH_WEBHOOKS: url, MESH_WEBHOOK_PRIVATE: '1' };
}

function keyIn(dataDir: string): string {
  return loadConfig({ dataDir }, {}, REAL_TIME.now()).publicKey;
}

async function inviteMany({ na }: Awaited<ReturnType<typeof startChildServer>>, count: number) {
  assert.equal(outcome(await operate(na, '/admin/invite', { count })), '200');
}
