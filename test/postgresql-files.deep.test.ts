/** Rows and files of a database that a disk has damaged or lost: reading the state, as a backup does, finds them. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { verifySignature } from '../src/base/crypto/ed25519.ts';
import { soundTables } from '../src/maintenance/backup/check-state.ts';
import { parseStoreAddress } from '../src/store/postgresql/address.ts';
import { unreadableBecause } from '../src/store/postgresql/connect.ts';
import { openPostgresqlSource } from '../src/store/postgresql/source.ts';
import { startTestAuthority } from './support/authority.ts';
import { changeFile, loseFile, losePage, spoilPage } from './support/damaged-page.ts';
import { failIn, mayTrace } from './support/failing-calls.ts';
import { ownNetwork } from './support/folders.ts';
import { startCluster } from './support/postgresql.ts';
import { migratedDatabase } from './support/postgresql-store.ts';
import { get, heartbeat, joinedNode, operate, outcome } from './support/requests.ts';

const cluster = await startCluster();
after(() => cluster[Symbol.asyncDispose]());

const nameOf = (url: string) => new URL(url).pathname.slice(1);

test('a changed bit in any table is found, and its row is named', async () => {
  const url = await databaseWithNode();
  assert.equal(await problemOf(url), null);
  for (const [table, key, column] of [
    ['meta', 'key', 'value'],
    ['subjects', 'id', 'snapshot'],
    ['nonces', 'revision', 'digests'],
    ['nonces', 'revision', 'answers'],
    ['audit', 'last_entry', 'entries'],
    ['liveness', 'id', 'contact'],
  ] as const) {
    const last = `select ${key} from mesh_na.${table} where length(${column}) > 4 order by ${key} desc limit 1`;
    const flip = `update mesh_na.${table} set ${column} = set_byte(${column}, 3, get_byte(${column}, 3) # 1)
      where ${key} = (${last})`;
    const [found] = await cluster.query(nameOf(url), `${flip} returning ${column} as value`);
    assert.ok(found !== undefined, `${table} has a row to damage`);
    const named = column === 'answers' ? 'answers' : table;
    assert.match(
      String(await problemOf(url)),
      new RegExp(`: the row .* of table ${named} does not match`),
    );
    await cluster.query(nameOf(url), flip);
    assert.equal(await problemOf(url), null);
  }
});

for (const [table, sentence] of [
  ['subjects', /: table subjects cannot be read \(invalid page in block 0 of/],
  ['meta', /: table meta cannot be read \(invalid page in block 0 of/],
] as const) {
  test(`a page of ${table} that PostgreSQL cannot read is damage`, async () => {
    const url = await databaseWithNode();
    await changeFile(cluster, url, table, spoilPage);
    assert.match(String(await problemOf(url)), sentence);
  });
}

test('a table whose file is gone is damage', async () => {
  const url = await databaseWithNode();
  await loseFile(cluster, url, 'subjects');
  assert.match(
    String(await problemOf(url)),
    /: table subjects cannot be read \(could not open file /,
  );
});

test('a page of meta that a disk has lost is damage, not a database without tables', async () => {
  const url = await databaseWithNode();
  await changeFile(cluster, url, 'meta', losePage);
  assert.match(String(await problemOf(url)), /: table meta has no schema version/);
});

for (const table of ['subjects', 'nonces', 'audit']) {
  test(`rows of a page of ${table} that a disk has lost are damage`, async () => {
    const url = await databaseWithNode();
    // Once all rows of a page are known to be visible, an index finds them without reading the page.
    await cluster.query(nameOf(url), `vacuum mesh_na.${table}`);
    await changeFile(cluster, url, table, losePage);
    const sentence = /: table \w+ holds \d+ entries where \d+ were stored|the last audit entry is/;
    assert.match(String(await problemOf(url)), sentence);
  });
}

test('a missing audit entry is damage', async () => {
  const url = await databaseWithNode();
  const [gone] = await cluster.query(
    nameOf(url),
    'delete from mesh_na.audit where last_entry = 2 returning last_entry',
  );
  assert.ok(gone !== undefined);
  assert.match(String(await problemOf(url)), /: an audit entry is missing/);
});

test('a reader of events on an unreadable page is disconnected, and the service continues', async () => {
  const url = await migratedDatabase(cluster);
  await using na = await startTestAuthority({ flags: { store: url } });
  // The log needs several pages, so that its end can still be written.
  for (let made = 0; made < 24; made += 1) await operate(na, '/admin/invite', { count: 2 });
  await changeFile(cluster, url, 'audit', spoilPage);
  await operate(na, '/events?follow=0', {}, { method: 'GET' }).catch(() => null);
  await na.settle();
  const errors = na.logLines.filter((line) => line.includes(' ERROR '));
  assert.equal(errors.length, 1, errors.join(''));
  assert.match(
    String(errors[0]),
    /stored state is damaged: table audit cannot be read \(invalid page/,
  );
  assert.equal(outcome(await heartbeat(na, await joinedNode(na))), '200');
  assert.equal((await get(na, '/readyz')).status, 200);
});

test('an unreachable database is not damage', async () => {
  const nowhere = 'postgresql://mesh@127.0.0.1:1/mesh';
  assert.match(String(await problemOf(nowhere)), /cannot be reached \(ECONNREFUSED\)$/);
});

test('only errors about the files of a table are damage to it', () => {
  const said = (code: string) => unreadableBecause(Object.assign(new Error('said'), { code }));
  const ofFiles = ['XX000', 'XX001', 'XX002', '58030', '58P01'];
  assert.deepEqual(ofFiles.map(said), Array(5).fill('said'));
  // No connection, permission, space, memory, time, server, table, or network.
  const others = ['08006', '42501', '53100', '53200', '57014', '57P01', '42P01', 'ECONNRESET'];
  assert.deepEqual(others.map(said), Array(8).fill(null));
});

test('a page that the disk cannot read is damage to its table', async (t) => {
  if (!mayTrace()) return t.skip('this user may not trace processes');
  const url = await databaseWithNode();
  const data = join(cluster.socketFolder, 'data');
  let file = '';
  await changeFile(cluster, url, 'subjects', (_bytes, path) => {
    file = path;
  });
  const [server = ''] = readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n');
  await failIn(Number(server), data, { file, call: 'pread64', error: 'EIO', nth: '1+' });
  const sentence =
    /: table subjects cannot be read \(could not read block .*: Input\/output error\)/;
  assert.match(String(await problemOf(url)), sentence);
});

/** What `store verify` would say about the state; null if it is sound. */
async function problemOf(url: string): Promise<string | null> {
  try {
    const source = await openPostgresqlSource(parseStoreAddress(url, {}));
    await soundTables(source, verifySignature).finally(() => source.close());
    return null;
  } catch (cause) {
    return String(cause);
  }
}

/** The state of a service that has stopped. */
async function databaseWithNode(): Promise<string> {
  const url = await migratedDatabase(cluster);
  const dataDir = ownNetwork();
  const na = await startTestAuthority({ dataDir, flags: { store: url } });
  await heartbeat(na, await joinedNode(na));
  await operate(na, '/admin/invite');
  await na.stop();
  return url;
}
