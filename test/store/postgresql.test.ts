import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { serialize } from 'node:v8';
import pg from 'pg';
import { systemRuntime } from '../../src/base/runtime.ts';
import { parseStoreAddress } from '../../src/store/postgresql/address.ts';
import type { LeaseClock } from '../../src/store/postgresql/clocks.ts';
import { keepInstanceRow, type OwnRow } from '../../src/store/postgresql/instances.ts';
import { readAuditLog } from '../../src/store/postgresql/source.ts';
import { readStatus } from '../../src/store/postgresql/status.ts';
import { openPostgresqlStore } from '../../src/store/postgresql/store.ts';
import type { AuditEntry, Store, Unit } from '../../src/store/store.ts';
import { cuttableProxy } from '../support/instances.ts';
import { storeOptions } from '../support/postgresql-store.ts';
import { spawnNode } from '../support/processes.ts';
import { LOADER, modulePath } from '../support/project.ts';
import { sharedCluster } from '../support/shared-cluster.ts';
import { until } from '../support/until.ts';
import { type OpenedStore, testStore } from './conformance.ts';

const cluster = await sharedCluster();

testStore({ name: 'PostgreSQL', open });

interface PostgresqlPlace extends OpenedStore {
  readonly url: string;
}

async function open(): Promise<PostgresqlPlace> {
  const url = await cluster.createStore();
  let holder: Store | null = null;

  async function openHere(): Promise<Store> {
    const store = await openPostgresqlStore(storeOptions(url));
    const release = (how: 'close' | 'abandon') => async () => {
      holder = null;
      await store[how]();
    };
    holder = { ...store, close: release('close'), abandon: release('abandon') };
    return holder;
  }

  return {
    url,
    store: await openHere(),
    reopen: openHere,
    async dieAfter(units) {
      await commitAndDie(url, units);
      await withClient(url, letLeaseRunOut);
    },
    async auditEntries() {
      const entries: AuditEntry[] = [];
      for await (const entry of readAuditLog(parseStoreAddress(url, {}))) entries.push(entry);
      return entries;
    },
    async [Symbol.asyncDispose]() {
      await holder?.close();
    },
  };
}

async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** Has the same effect as waiting after a holder has died. */
async function letLeaseRunOut(client: pg.Client): Promise<void> {
  await client.query(`update mesh_na.writer_lease set expires_at = clock_timestamp()`);
}

/** A process that opens the store, commits the units one by one and is killed. */
async function commitAndDie(url: string, units: readonly Unit[]): Promise<void> {
  const script = `
    import { setTimeout } from 'node:timers/promises';
    import { deserialize } from 'node:v8';
    import { storeOptions } from '${pathToFileURL(modulePath('test/support/postgresql-store.ts'))}';
    import { openPostgresqlStore } from '${pathToFileURL(modulePath('src/store/postgresql/store.ts'))}';
    const store = await openPostgresqlStore(storeOptions(process.argv[1]));
    for (const unit of deserialize(Buffer.from(process.argv[2], 'base64'))) {
      await store.commit(unit).catch(() => undefined);
    }
    process.stdout.write('done');
    await setTimeout(60_000);
  `;
  const args = [...LOADER, '--input-type=module', '--eval', script];
  const child = spawnNode([...args, url, serialize(units).toString('base64')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  assert.ok(child.stdout !== null);
  const [said] = await once(child.stdout, 'data');
  assert.equal(String(said), 'done');
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}

// What instances of one database say about themselves, and for how long it counts.

test('an instance is seen with what it says, until it ends or is silent for three seconds', async () => {
  const url = await cluster.createStore();
  const database = new URL(url).pathname.slice(1);
  const address = parseStoreAddress(url, {});
  let own: OwnRow = { isActive: false, revision: null, lag: null, nextKey: null };
  const first = keepRow(1, () => ({ isActive: true, revision: 9, lag: 0, nextKey: 'k' }));
  const second = keepRow(2, () => own);
  function keepRow(number: number, said: () => OwnRow) {
    return keepInstanceRow({
      address,
      leaseMs: 1500,
      clock: HASTY,
      id: `00000000-0000-4000-8000-00000000000${number}`,
      name: `pid ${number}`,
      link: number === 1 ? '127.0.0.1:1' : null,
      own: said,
    });
  }
  const shown = async () =>
    (await readStatus(address)).contents?.standbys.map(({ name, lag_revisions: lag }) => [
      name,
      lag,
    ]);

  await until(async () => first.others().length === 1 && second.others().length === 1);
  const { silent, ...seen } = second.others()[0] ?? { silent: Number.NaN };
  assert.deepEqual(seen, {
    id: '00000000-0000-4000-8000-000000000001',
    name: 'pid 1',
    address: '127.0.0.1:1',
    isActive: true,
    revision: 9,
    lag: 0,
    nextKey: 'k',
  });
  assert.ok(silent >= 0 && silent < 3, `${silent}`);
  assert.deepEqual(await shown(), [['pid 2', null]], 'the active instance is no standby');
  own = { isActive: false, revision: 7, lag: 2, nextKey: null };
  await until(async () => first.others()[0]?.lag === 2);
  assert.deepEqual(await shown(), [['pid 2', 2]]);

  await second.close();
  await until(async () => first.others().length === 0);
  assert.deepEqual(await shown(), []);
  await cluster.query(
    database,
    `insert into mesh_na.instances (id, name, active, seen)
      values (gen_random_uuid(), 'lost', false, clock_timestamp() - interval '2 seconds')`,
  );
  await until(async () => first.others().length === 1);
  await until(async () => first.others().length === 0);
  assert.deepEqual(await shown(), [['lost', null]], 'an operator sees for longer what was lost');
  await cluster.query(
    database,
    `update mesh_na.instances set seen = clock_timestamp() + interval '1 hour' where name = 'lost'`,
  );
  await until(async () => (await shown())?.length === 0);
  assert.deepEqual(first.others(), [], 'nobody was there while the clock was ahead');
  await first.close();
});

test('an instance whose database has vanished does not wait for as long as a lease lasts', async () => {
  const url = new URL(await cluster.createStore());
  const direct = parseStoreAddress(url.href, {});
  await using proxy = await cuttableProxy(url.host);
  url.host = proxy.address;
  const row = keepInstanceRow({
    address: parseStoreAddress(url.href, {}),
    leaseMs: 60_000,
    clock: HASTY,
    id: '00000000-0000-4000-8000-000000000001',
    name: 'pid 1',
    link: null,
    own: () => ({ isActive: false, revision: 1, lag: 0, nextKey: null }),
  });
  await until(async () => (await readStatus(direct)).contents?.standbys.length === 1);
  proxy.silence();
  const began = performance.now();
  await row.close();
  assert.ok(performance.now() - began < 30_000);
});

/** A hundred times as fast. */
const HASTY: LeaseClock = {
  elapsed: systemRuntime.elapsed,
  after(milliseconds, work) {
    const timer = setTimeout(work, milliseconds / 100);
    return () => clearTimeout(timer);
  },
};
