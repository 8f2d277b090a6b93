/** `mesh-na doctor` on a state in a database: a new one is healthy, and the advice fits each finding. */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { systemRuntime } from '../src/base/runtime.ts';
import type { Finding } from '../src/cli/doctor/finding.ts';
import { checkLocal } from '../src/cli/doctor/local.ts';
import { loadConfig } from '../src/server/config/load.ts';
import { networkOf } from '../src/store/network-identity.ts';
import { parseStoreAddress } from '../src/store/postgresql/address.ts';
import { SCHEMA_VERSION } from '../src/store/postgresql/schema.ts';
import { migrateDatabase } from '../src/store/postgresql/status.ts';
import { markInUse } from '../src/store/usage-mark.ts';
import { startTestAuthority } from './support/authority.ts';
import { makeNetworkFolder } from './support/folders.ts';
import { startCluster } from './support/postgresql.ts';
import { migratedDatabase } from './support/postgresql-store.ts';
import { heartbeat, joinedNode, outcome } from './support/requests.ts';

const cluster = await startCluster();
const { folder: dataDir } = makeNetworkFolder();
rmSync(join(dataDir, 'keys', 'root.key'));
after(async () => {
  rmSync(dataDir, { recursive: true, force: true });
  await cluster[Symbol.asyncDispose]();
});

interface Examined {
  readonly troubles: readonly string[];
  readonly store: Finding | undefined;
}

/** The findings that report problems, and the one about the state. */
async function examine(store: string, deep = false): Promise<Examined> {
  const { findings } = await checkLocal({
    flags: { dataDir, store },
    environment: {},
    otherVariables: [],
    machine: {
      now: systemRuntime.now,
      nodeVersion: '22.12.0',
      glibcVersion: '2.39',
      freeBytes: async () => 2 ** 40,
      openFiles: () => 65_536,
    },
    deep,
  });
  const troubled = findings.filter(({ outcome }) => outcome === 'wrong' || outcome === 'warning');
  return {
    troubles: troubled.map(({ check, outcome }) => `${check} ${outcome}`),
    store: findings.find(({ check }) => check === 'store'),
  };
}

test('a new network, whose database is still empty, is healthy', async () => {
  const { troubles, store } = await examine(await migratedDatabase(cluster));
  assert.deepEqual(troubles, []);
  assert.equal(store?.found, 'There is no state yet; the first start creates it');
});

test('a state in a database is healthy while it is served, and after an orderly stop', async () => {
  const url = await migratedDatabase(cluster);
  const na = await startTestAuthority({ dataDir, flags: { store: url } });
  try {
    await joinedNode(na);
    const { troubles, store } = await examine(url, true);
    assert.deepEqual(troubles, ['head warning']);
    assert.match(String(store?.found), /^Revision \d+ of epoch 1 \(postgresql, /);
  } finally {
    await na.stop();
  }
  assert.deepEqual((await examine(url)).troubles, ['head warning']);
  // What a killed process leaves behind.
  const name = new URL(url).pathname.slice(1);
  await cluster.query(name, 'update mesh_na.writer_lease set released = false');
  assert.deepEqual((await examine(url)).troubles, ['last_stop warning', 'head warning']);
});

test('the state of another network is named, and not read', async () => {
  const url = await migratedDatabase(cluster);
  const { folder } = makeNetworkFolder();
  const other = await startTestAuthority({ dataDir: folder, flags: { store: url } });
  await other.stop();
  rmSync(folder, { recursive: true });
  const { troubles, store } = await examine(url, true);
  assert.deepEqual(troubles, ['store wrong']);
  assert.equal(store?.cure, 'Use the data folder or database of this network');
});

test('keys that were in use and an empty database: the right database, or a restore', async () => {
  markInUse(dataDir, networkOf(loadConfig({ dataDir }, {}, systemRuntime.now()).genesis));
  const { troubles, store } = await examine(await migratedDatabase(cluster));
  assert.deepEqual(troubles, ['store wrong']);
  assert.match(
    String(store?.found),
    /was in use by the network "alpha", but the database has no state/,
  );
  assert.match(String(store?.cure), /^Repair the database, or set --store .* restore it from a/);
});

test('tables of another version: not a restore', async () => {
  const url = await migratedDatabase(cluster);
  const database = new URL(url).pathname.slice(1);
  for (const version of [SCHEMA_VERSION - 2, SCHEMA_VERSION + 1]) {
    await cluster.query(
      database,
      `select mesh_na.put_meta('schema', '\\x${version.toString(16).padStart(2, '0')}')`,
    );
    const { troubles, store } = await examine(url);
    assert.deepEqual(troubles, ['store wrong']);
    assert.match(
      String(store?.found),
      /this program reads version 7: start the program that wrote it$/,
    );
    assert.equal(store?.cure, 'Use the program version that matches the state');
  }
});

test('tables of version 0.2.0 are upgraded by store migrate, while nobody serves', async () => {
  const url = await migratedDatabase(cluster);
  const database = new URL(url).pathname.slice(1);
  const { folder } = makeNetworkFolder();
  const first = await startTestAuthority({ dataDir: folder, flags: { store: url } });
  const node = await joinedNode(first);
  await first.stop();
  await cluster.query(
    database,
    `drop table mesh_na.instances;
     alter table mesh_na.writer_lease add column wanted_until timestamptz;
     select mesh_na.put_meta('schema', '\\x06')`,
  );
  const start = () => startTestAuthority({ dataDir: folder, flags: { store: url } });
  await assert.rejects(start(), /has schema version 6; .*: mesh-na store migrate, .* upgrades it/);
  const lease = (released: boolean) =>
    `update mesh_na.writer_lease set released = ${released}, holder_name = 'pid 12 on host',
       expires_at = clock_timestamp() + interval '1 minute'`;
  await cluster.query(database, lease(false));
  const address = parseStoreAddress(url, {});
  await assert.rejects(
    migrateDatabase(address),
    /^Error: pid 12 on host serves .*: stop all instances/,
  );
  await cluster.query(database, lease(true));
  const { from, to } = await migrateDatabase(address);
  assert.deepEqual([from, to], [6, SCHEMA_VERSION]);
  assert.equal((await migrateDatabase(address)).from, SCHEMA_VERSION);
  const second = await startTestAuthority({
    dataDir: folder,
    flags: { store: url },
    clock: first.clock,
  });
  assert.equal(outcome(await heartbeat(second, node)), '200');
  await second.stop();
  rmSync(folder, { recursive: true });
});

test('no tables, and a server that is not there: not a restore', async () => {
  const [untouched, nowhere] = [
    await examine(await cluster.createDatabase()),
    await examine('postgresql://mesh@127.0.0.1:1/mesh'),
  ];
  assert.match(String(untouched.store?.found), /has no tables of an authority; mesh-na store mig/);
  assert.match(String(nowhere.store?.found), /cannot be reached/);
  for (const { store } of [untouched, nowhere]) {
    assert.equal(store?.outcome, 'wrong');
    assert.match(String(store?.cure), /^Repair the database, or set --store to the database with/);
  }
});
