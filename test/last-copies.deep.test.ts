/**
 * Signed documents while no instance can write because the database is gone: served as stale copies, and fresh again
 * later.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { ROUTES } from '../src/edge/routes/table.ts';
import {
  createInstanceStatusMemory,
  instanceStatusIn,
  noteAnswer,
} from '../src/protocol/contract/instance-status.ts';
import { createVacancy } from '../src/server/forward/active-watch.ts';
import { assertEnded, invite } from './support/broken-disk.ts';
import { cuttableProxy, isActive, placeOf, testInstances } from './support/instances.ts';
import { keptLog } from './support/kept-log.ts';
import { startCluster } from './support/postgresql.ts';
import { get, joinedNode, operate, outcome, type Received, send } from './support/requests.ts';
import { smallDisk } from './support/small-disk.ts';
import { until } from './support/until.ts';

const cluster = await startCluster();
after(() => cluster[Symbol.asyncDispose]());

const LINKED = { MESH_LINK: '127.0.0.1:0', MESH_HOLD_MS: '200' };
const COPIED = ['/crl', '/genesis', '/policy', '/sovereign-revocation-feed', '/sovereign.json'];

test('the description of the routes says which have last copies', () => {
  const described = ROUTES.filter(({ hasLastCopy }) => hasLastCopy).map(({ path }) => path);
  assert.deepEqual(described.sort(), COPIED);
});

test('nobody is active only when neither database nor active instance was reached for the length of a lease', () => {
  let at = 10_000;
  const memory = createInstanceStatusMemory();
  const instanceStatus = instanceStatusIn(memory);
  const { logger, text } = keptLog();
  const vacancy = createVacancy({ memory, leaseMs: 1500, logger, elapsed: () => at });
  function missedAfter(milliseconds: number): boolean {
    at += milliseconds;
    vacancy.missed();
    return instanceStatus.isVacant();
  }

  assert.equal(missedAfter(1499), false, 'the last one may still have the right to write');
  noteAnswer(memory);
  assert.equal(missedAfter(5000), false, 'the active instance has answered');
  assert.equal(missedAfter(1499), false);
  vacancy.reached();
  assert.equal(missedAfter(1499), false, 'another may have the right since');
  assert.equal(missedAfter(1), true);
  assert.equal(missedAfter(100), true);
  noteAnswer(memory);
  assert.equal(missedAfter(100), false);
  assert.equal(missedAfter(1500), true);
  vacancy.reached();
  assert.equal(instanceStatus.isVacant(), false);
  const levels = text().trim().split('\n');
  assert.deepEqual(
    levels.map((line) => line.split(' ')[1]),
    ['WARNING', 'INFO', 'WARNING', 'INFO'],
    'each is said once',
  );
});

test('while the database is gone, a standby serves copies of some documents as stale and refuses the rest, and it recovers without a restart', async () => {
  await using instances = await testInstances(cluster);
  const active = await instances.start(LINKED);
  const standby = await instances.start(LINKED);
  const { na } = standby;
  await until(async () => (await placeOf(standby)).ready);
  const began = Date.now();
  const node = await joinedNode(na);
  const revoked = await operate(na, '/admin/revoke', { cert_id: node.certId });
  assert.equal(outcome(revoked), '200');
  const current = new Map<string, Received>();
  for (const path of COPIED) current.set(path, await get(na, path));

  await cluster.stop('SIGQUIT');
  assert.equal((await active.ended).code, 1, 'the active instance ends with its lease');
  await until(async () => (await get(na, '/crl')).status === 200);
  for (const [path, before] of current) {
    assert.equal(before.headers.get('x-mesh-stale-since'), null);
    const etag = String(before.headers.get('etag'));
    for (const asked of [
      await get(na, path),
      await send(na, 'GET', path, { headers: { 'If-None-Match': etag } }),
    ]) {
      assert.equal(asked.status, 200, path);
      assert.equal(asked.text, before.text, path);
      assert.equal(asked.headers.get('etag'), null);
      assert.equal(asked.headers.get('cache-control'), 'no-store');
      const since = asked.headers.get('x-mesh-stale-since') ?? '';
      assert.match(since, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
      assert.ok(Date.parse(since) > began - 1000 && Date.parse(since) < Date.now(), since);
    }
  }
  const refused = [
    get(na, '/crl?since=0'),
    get(na, '/bulletin'),
    get(na, '/recognition-graph'),
    get(na, '/sovereign-revocation-feed?issuer_sovereign_id=beta'),
    send(na, 'GET', '/agents'),
    operate(na, '/admin/invite'),
  ];
  for (const path of ['/readyz', '/health']) {
    assert.equal(outcome(await get(na, path)), '503 service_not_ready', path);
  }
  for (const asked of await Promise.all(refused)) {
    assert.equal(outcome(asked), '503 authority_unavailable');
    assert.equal(asked.headers.get('retry-after'), '1');
    assert.equal(asked.headers.get('x-mesh-stale-since'), null);
  }
  assert.equal((await placeOf(standby)).ready, false, 'a balancer prefers the active instance');
  assert.match((await get(na, '/metrics')).text, /^mesh_na_serving_stale 1$/m);

  await cluster.start();
  await until(() => isActive(standby));
  await until(async () => (await get(na, '/crl')).headers.get('x-mesh-stale-since') === null);
  assert.match((await get(na, '/metrics')).text, /^mesh_na_serving_stale 0$/m);
  const healed = await get(na, '/crl');
  assert.ok(healed.text.includes(node.certId) && healed.headers.get('etag') !== null);
  assert.equal(outcome(await operate(na, '/admin/invite')), '200');
  assert.equal(standby.process.exitCode, null);
});

test('while the disk of the database is full, only its active instance ends, standbys serve signed documents as stale, and one takes over when there is room', async (t) => {
  await using disk = await smallDisk('40m', true);
  if (disk === null) return t.skip('this user may not mount a disk for others');
  await using full = await startCluster({ behind: disk.inside.command });
  mkdirSync(join(disk.path, 'tables'));
  chmodSync(disk.path, 0o777);
  execFileSync('chown', ['postgres', join(disk.path, 'tables')]);
  await full.query('postgres', `create tablespace small location '${disk.inside.path}/tables'`);
  await using instances = await testInstances(full, 'tablespace small');
  const active = await instances.start(LINKED);
  const standbys = [await instances.start(LINKED), await instances.start(LINKED)];
  for (const standby of standbys) await until(async () => (await placeOf(standby)).ready);
  const node = await joinedNode(active.na);
  assert.equal(outcome(await operate(active.na, '/admin/revoke', { cert_id: node.certId })), '200');

  // Each has the answers that it has passed on.
  for (const { na } of standbys) assert.equal(outcome(await get(na, '/crl')), '200');
  disk.fill();
  await invite(active);
  await assertEnded(active, /No space left on device/);
  for (const { na } of standbys) {
    await until(async () => (await get(na, '/crl')).headers.has('x-mesh-stale-since'));
    assert.ok((await get(na, '/crl')).text.includes(node.certId));
    assert.equal(outcome(await operate(na, '/admin/invite')), '503 authority_unavailable');
  }
  const saying =
    /ERROR mesh\.store The database takes no changes \(.*No space left on device\): no instance is active/g;
  for (const standby of standbys) {
    await until(async () => (standby.log().match(saying) ?? []).length === 1);
  }

  disk.clear();
  await until(async () => {
    const places = await Promise.all(standbys.map(placeOf));
    return places.some(({ role }) => role === 'active') && places.every(({ ready }) => ready);
  });
  for (const { na, process, log } of standbys) {
    const list = await get(na, '/crl');
    assert.equal(list.headers.get('x-mesh-stale-since'), null);
    assert.ok(list.text.includes(node.certId));
    assert.equal(outcome(await operate(na, '/admin/invite')), '200');
    assert.equal(process.exitCode, null);
    assert.equal((log().match(saying) ?? []).length, 1, 'said once');
  }
});

test('a standby that is cut off from the active instance alone serves no copy, however long', async () => {
  await using instances = await testInstances(cluster);
  await instances.start(LINKED);
  await using proxy = await cuttableProxy(await instances.linkOfActive());
  await instances.setLinkOfActive(proxy.address);
  const { na } = await instances.start({ ...LINKED, MESH_LEASE_MS: '500' });
  await until(async () => (await get(na, '/crl')).status === 200);
  await proxy[Symbol.asyncDispose]();
  const until503 = performance.now() + 1500;
  await until(async () => (await get(na, '/crl')).status === 503);
  while (performance.now() < until503) {
    assert.equal(outcome(await get(na, '/crl')), '503 authority_unavailable');
  }
});
