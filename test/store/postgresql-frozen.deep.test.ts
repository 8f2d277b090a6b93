/** A primary that freezes or is cut off without notice: everything that waits for it gives up. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseStoreAddress } from '../../src/store/postgresql/address.ts';
import { migrateDatabase } from '../../src/store/postgresql/status.ts';
import { NO_LIMITS, startChildServer } from '../support/child-server.ts';
import { networkFolder } from '../support/folders.ts';
import { cuttableProxy, placeOf, testInstances } from '../support/instances.ts';
import { startCluster } from '../support/postgresql.ts';
import { startPair } from '../support/postgresql-pair.ts';
import { operate, outcome } from '../support/requests.ts';
import { until } from '../support/until.ts';

const LEASE_MS = 1500;
/** Enough for a busy machine, and far below the half minute that would be spent waiting for a vanished server. */
const PATIENCE_MS = 15_000;
/** The index of an active instance's connection for changes; the first one is for its lease. */
const WRITING = 1;

test('when the primary freezes and its synchronous standby is promoted, another instance soon serves, with the state that it has kept ready', async () => {
  await using folder = networkFolder('alpha');
  await using servers = await startPair();
  await servers.primary().query('postgres', 'create database frozen');
  const hosts = servers.ports.map((port) => `127.0.0.1:${port}`).join(',');
  const url = servers
    .primary()
    .url('frozen')
    .replace(/@[^/]+/, `@${hosts}`);
  await migrateDatabase(parseStoreAddress(url, {}));
  const environment = { ...NO_LIMITS, MESH_STORE: url, MESH_LEASE_MS: String(LEASE_MS) };
  await using active = await startChildServer(folder.path, { environment });
  await using waiting = await startChildServer(folder.path, { environment });
  assert.equal(outcome(await operate(active.na, '/admin/invite')), '200');
  await until(async () => waiting.log().includes('The standby state is ready'));
  servers.primary().freeze();
  const began = performance.now();
  await servers.promote();
  await until(async () => (await placeOf(waiting)).ready);
  const took = performance.now() - began;
  assert.ok(took < LEASE_MS + PATIENCE_MS, `${took} ms`);
  assert.equal(outcome(await operate(waiting.na, '/admin/invite')), '200');
  assert.doesNotMatch(waiting.log(), /it is read again/);
  assert.equal((await active.ended).code, 1);
});

test('an active instance whose changes are not answered ends, with one line that says so, even if it gets a signal', async () => {
  await using cluster = await startCluster();
  await using instances = await testInstances(cluster);
  await using proxy = await cuttableProxy(`127.0.0.1:${cluster.port}`);
  const through = { MESH_STORE: instances.url.replace(/@[^/]+/, `@${proxy.address}`) };
  for (const isStopped of [false, true]) {
    const active = await instances.start(through);
    assert.equal(outcome(await operate(active.na, '/admin/invite')), '200');
    proxy.cutOnly(WRITING);
    const asked = operate(active.na, '/admin/invite').catch(() => null);
    if (isStopped) active.process.kill('SIGTERM');
    const { code, stderr } = await active.ended;
    assert.equal(code, 1);
    const problem =
      /CRITICAL mesh\.process Ending after a failure: ownership: Error: The database renews the lease, and has not answered a statement for 1\.5 s: [^\n]+\n/g;
    assert.equal(stderr.match(problem)?.length, 1, stderr);
    await asked;
    proxy.heal();
  }
});
