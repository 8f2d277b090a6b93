/** Another session that locks a table, such as VACUUM FULL, makes what needs the table wait, and ends nothing. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { parseStoreAddress } from '../../src/store/postgresql/address.ts';
import { migrateDatabase } from '../../src/store/postgresql/status.ts';
import { openPostgresqlStore } from '../../src/store/postgresql/store.ts';
import type { Unit } from '../../src/store/store.ts';
import { NO_LIMITS, startChildServer } from '../support/child-server.ts';
import { networkFolder } from '../support/folders.ts';
import { cuttableProxy, placeOf, testInstances } from '../support/instances.ts';
import { startCluster } from '../support/postgresql.ts';
import { startPair } from '../support/postgresql-pair.ts';
import { storeOptions } from '../support/postgresql-store.ts';
import { get, operate, operatorRequest, outcome } from '../support/requests.ts';
import { sharedCluster } from '../support/shared-cluster.ts';
import { until } from '../support/until.ts';
import { created, unit } from './conformance.ts';

const cluster = await sharedCluster();

const LEASE_MS = 1000;

test('a change waits for a lock, whose session is named, and a read of the log is given up alone', async () => {
  const url = await cluster.createStore();
  const delays: string[] = [];
  const lost: string[] = [];
  const store = await openPostgresqlStore(
    storeOptions(url, {
      leaseMs: LEASE_MS,
      delayed: (reason) => delays.push(reason),
      lost: (problem) => lost.push(problem),
    }),
  );
  const locking = await lockOn(url, 'audit');
  await assert.rejects(store.auditAfter(0, 1), /Table audit is locked, or slow/);
  assert.equal(await store.commit(unitOf('one')), 1, 'this one needs another table');

  await locking.query('begin; lock table mesh_na.subjects in access exclusive mode');
  const waiting = store.commit(unitOf('two'));
  await until(async () => delays.length > 0);
  const [{ pid } = {}] = (await locking.query('select pg_backend_pid() as pid')).rows;
  assert.deepEqual(delays, [
    `A statement waits for the lock on mesh_na.subjects that session ${pid} (maintenance, user postgres) has; it goes on when that ends`,
  ]);
  await locking.query('rollback');
  assert.equal(await waiting, 2);
  assert.deepEqual(lost, []);
  assert.equal(store.health(), null);
  assert.deepEqual(await store.auditAfter(0, 1), []);
  await locking.end();
  await store.close();
});

test('a service outlives a lock on the audit log, its readers and its changes, and so does one that starts meanwhile', async () => {
  await using folder = await networkFolder('alpha');
  const url = await cluster.createStore();
  const environment = { MESH_STORE: url, MESH_LEASE_MS: String(LEASE_MS) };
  await using server = await startChildServer(folder.path, { environment });
  let locking = await lockOn(url, 'audit');
  const { init } = operatorRequest(server.na, '/events?after=0', {}, { method: 'GET' });
  const events = await fetch(`${server.na.url}/events?after=0`, init);
  const changing = operate(server.na, '/admin/invite');
  const waits = 'A statement waits for the lock on mesh_na.audit that session';
  await until(async () => server.log().includes(waits));
  assert.equal((await get(server.na, '/readyz')).status, 200);
  await locking.end();
  assert.equal(outcome(await changing), '200');
  await events.body?.cancel();
  assert.equal((await server.end('SIGTERM')).code, 0);

  locking = await lockOn(url, 'audit');
  const starting = startChildServer(folder.path, { environment });
  await until(async () => (await waitsFor(locking)) > 0);
  await locking.query('select pg_sleep($1)', [(2 * LEASE_MS) / 1000]);
  await locking.end();
  await using successor = await starting;
  assert.equal(outcome(await operate(successor.na, '/admin/invite')), '200');
});

async function lockOn(url: string, table: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, application_name: 'maintenance' });
  await client.connect();
  await client.query(`begin; lock table mesh_na.${table} in access exclusive mode`);
  return client;
}

/** How many sessions wait for a lock in the database. */
async function waitsFor(client: pg.Client): Promise<number> {
  const { rowCount } = await client.query(
    `select from pg_locks join pg_database on pg_database.oid = database
     where not granted and datname = current_database()`,
  );
  return rowCount ?? 0;
}

function unitOf(id: string): Unit {
  return unit({ subjects: [created('c', id, {})] });
}

// A primary that freezes or is cut off without notice: everything that waits for it gives up.

const FROZEN_LEASE_MS = 1500;
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
  const environment = { ...NO_LIMITS, MESH_STORE: url, MESH_LEASE_MS: String(FROZEN_LEASE_MS) };
  await using active = await startChildServer(folder.path, { environment });
  await using waiting = await startChildServer(folder.path, { environment });
  assert.equal(outcome(await operate(active.na, '/admin/invite')), '200');
  await until(async () => waiting.log().includes('The standby state is ready'));
  servers.primary().freeze();
  const began = performance.now();
  await servers.promote();
  await until(async () => (await placeOf(waiting)).ready);
  const took = performance.now() - began;
  assert.ok(took < FROZEN_LEASE_MS + PATIENCE_MS, `${took} ms`);
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
