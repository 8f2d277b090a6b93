/** Damage to a state in a database is found while it is served, and does not affect answers. */
import assert from 'node:assert/strict';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { parseStoreAddress } from '../src/store/postgresql/address.ts';
import { scrubDatabase } from '../src/store/postgresql/scrub.ts';
import { unreadableBecause } from '../src/store/postgresql/unreadable.ts';
import type { ScrubbedPart, ScrubPlace } from '../src/store/scrub.ts';
import { startTestAuthority } from './support/authority.ts';
import { changeFile, loseFile, losePage, spoilPage } from './support/damaged-page.ts';
import { failIn, mayTrace } from './support/failing-calls.ts';
import { makeNetworkFolder } from './support/folders.ts';
import { startCluster } from './support/postgresql.ts';
import { migratedDatabase } from './support/postgresql-store.ts';
import { get, heartbeat, joinedNode, operate, outcome } from './support/requests.ts';

const cluster = await startCluster();
after(() => cluster[Symbol.asyncDispose]());

const nameOf = (url: string) => new URL(url).pathname.slice(1);

test('a changed bit is found and reported, the service continues, and a repaired row is no longer reported', async () => {
  const url = await migratedDatabase(cluster);
  await using na = await startTestAuthority({ flags: { store: url } });
  const node = await joinedNode(na);
  await na.flush();
  const metrics = async () => (await get(na, '/metrics')).text;
  await na.scrub();
  assert.match(await metrics(), /^mesh_na_scrub_damaged_rows 0$/m);
  assert.match(await metrics(), /^mesh_na_scrub_completed_timestamp_seconds [1-9]/m);

  const flip = `update mesh_na.subjects set snapshot = set_byte(snapshot, 30, get_byte(snapshot, 30) # 8)
    where kind = 'certificate'`;
  await cluster.query(nameOf(url), flip);
  await na.scrub();
  assert.match(await metrics(), /^mesh_na_scrub_damaged_rows 1$/m);
  assert.match(await metrics(), /^mesh_na_posture_finding\{rule="damage"\} 2$/m);
  const row = `the row ["certificate","${node.certId}"] of table subjects does not match its checksum`;
  const errors = na.logLines.filter((line) => line.includes(' ERROR '));
  assert.equal(errors.length, 1, errors.join(''));
  assert.ok(errors[0]?.includes(`mesh.store The stored state is damaged: ${row}`), errors[0]);
  assert.equal(outcome(await heartbeat(na, node)), '200');
  assert.equal((await get(na, '/readyz')).status, 200);

  await cluster.query(nameOf(url), flip);
  await na.scrub();
  assert.match(await metrics(), /^mesh_na_scrub_damaged_rows 0$/m);
});

test('each row of every table is read once, in as many parts as it takes, and any damaged one is named', async () => {
  const url = await migratedDatabase(cluster);
  const { folder: dataDir } = makeNetworkFolder();
  const na = await startTestAuthority({ dataDir, flags: { store: url } });
  for (const count of [1000, 1000, 500]) await operate(na, '/admin/invite', { count });
  await heartbeat(na, await joinedNode(na));
  await na.stop();
  rmSync(dataDir, { recursive: true });
  const [whole, parts] = [await inParts(url, 1), await inParts(url, 168)];
  assert.equal(whole.length, 1);
  assert.ok(parts.length > 2);
  const rows = (read: readonly ScrubbedPart[]) => read.reduce((sum, part) => sum + part.rows, 0);
  assert.equal(rows(parts), rows(whole));
  const damaged = async () => (await inParts(url, 168)).flatMap((part) => part.damaged);
  assert.deepEqual(await damaged(), []);

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
    const [sentence, ...more] = await damaged();
    assert.match(String(sentence), new RegExp(`^the row .* of table ${named} does not match`));
    assert.deepEqual(more, []);
    await cluster.query(nameOf(url), flip);
    assert.deepEqual(await damaged(), []);
  }
});

for (const [table, sentence] of [
  ['subjects', /^table subjects cannot be read \(invalid page in block 0 of/],
  ['meta', /^table meta cannot be read \(invalid page in block 0 of/],
] as const) {
  test(`a page of ${table} that PostgreSQL cannot read is damage, and the other tables are read`, async () => {
    const url = await databaseWithNode();
    await changeFile(cluster, url, table, spoilPage);
    const [part, ...more] = await inParts(url, 1);
    assert.deepEqual(more, []);
    const [found, ...others] = part?.damaged ?? [];
    assert.match(String(found), sentence);
    assert.deepEqual(others, []);
    assert.ok((part?.rows ?? 0) > 3);
  });
}

test('a table whose file is gone is damage, and the other tables are read', async () => {
  const url = await databaseWithNode();
  await loseFile(cluster, url, 'subjects');
  const [part] = await inParts(url, 1);
  assert.equal(part?.damaged.length, 1);
  assert.match(String(part?.damaged[0]), /^table subjects cannot be read \(could not open file /);
  assert.ok((part?.rows ?? 0) > 3);
});

test('a page of meta that a disk has lost is damage, not a database without tables', async () => {
  const url = await databaseWithNode();
  await changeFile(cluster, url, 'meta', losePage);
  const [part] = await inParts(url, 1);
  assert.deepEqual(part?.damaged, ['table meta has no schema version']);
});

test('rows of a page that a disk has lost are damage, wherever they were', async () => {
  const url = await databaseWithNode();
  // Once all rows of a page are known to be visible, an index finds them without reading the page.
  await cluster.query(nameOf(url), 'vacuum mesh_na.subjects');
  const found: (readonly string[])[] = [];
  for (const table of ['subjects', 'nonces', 'audit']) {
    await changeFile(cluster, url, table, losePage);
    found.push((await inParts(url, 1)).flatMap(({ damaged }) => damaged));
  }
  const lacks = (table: string, number: string) => `table ${table} lacks ${number} of the entries`;
  const sentences = found.at(-1)?.map((sentence) => sentence.replace(/ that were stored$/, ''));
  assert.deepEqual(
    sentences?.map((sentence) => sentence.replace(/\d+/, 'n')),
    [lacks('subjects', 'n'), lacks('nonces', 'n'), lacks('audit', 'n')],
  );
  assert.deepEqual(
    found.map((damaged) => damaged.length),
    [1, 2, 3],
  );
});

test('a missing audit entry is damage', async () => {
  const url = await migratedDatabase(cluster);
  const { folder: dataDir } = makeNetworkFolder();
  const na = await startTestAuthority({ dataDir, flags: { store: url } });
  for (let made = 0; made < 3; made += 1) await operate(na, '/admin/invite');
  await na.stop();
  rmSync(dataDir, { recursive: true });
  const [gone] = await cluster.query(
    nameOf(url),
    'delete from mesh_na.audit where last_entry = 2 returning last_entry',
  );
  assert.ok(gone !== undefined);
  const damaged = (await inParts(url, 1)).flatMap((part) => part.damaged);
  assert.deepEqual(damaged, ['after entry 1, the audit log goes on with entry 3']);
});

test('a service whose meta page is damaged reports it, and continues', async () => {
  const url = await migratedDatabase(cluster);
  // A write of liveness in the meantime would read the page.
  const environment = { MESH_LIVENESS_FLUSH_MS: '60000' };
  await using na = await startTestAuthority({ flags: { store: url }, environment });
  const node = await joinedNode(na);
  await na.flush();
  let sound = Buffer.alloc(0);
  await changeFile(cluster, url, 'meta', (bytes) => {
    sound = Buffer.from(bytes);
    spoilPage(bytes);
  });
  await na.scrub();
  const metrics = async () => (await get(na, '/metrics')).text;
  assert.match(await metrics(), /^mesh_na_scrub_damaged_rows 1$/m);
  assert.match(await metrics(), /^mesh_na_posture_finding\{rule="damage"\} 2$/m);
  const errors = na.logLines.filter((line) => line.includes('table meta cannot be read'));
  assert.equal(errors.length, 1, na.logLines.join(''));
  assert.match(String(errors[0]), / ERROR mesh.store The stored state is damaged: table meta /);
  assert.equal(outcome(await heartbeat(na, node)), '200');

  await changeFile(cluster, url, 'meta', (bytes) => void sound.copy(bytes));
  await na.scrub();
  assert.match(await metrics(), /^mesh_na_scrub_damaged_rows 0$/m);
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
  const nowhere = parseStoreAddress('postgresql://mesh@127.0.0.1:1/mesh', {});
  await assert.rejects(scrubDatabase(nowhere, null, 1), /cannot be reached \(ECONNREFUSED\)$/);
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
    /^table subjects cannot be read \(could not read block .*: Input\/output error\)$/;
  assert.match(String((await inParts(url, 1))[0]?.damaged), sentence);
});

async function inParts(url: string, parts: number): Promise<ScrubbedPart[]> {
  const read: ScrubbedPart[] = [];
  let from: ScrubPlace | null = null;
  do {
    const part: ScrubbedPart = await scrubDatabase(parseStoreAddress(url, {}), from, parts);
    read.push(part);
    from = part.next;
  } while (from !== null);
  return read;
}

/** The state of a service that has stopped. */
async function databaseWithNode(): Promise<string> {
  const url = await migratedDatabase(cluster);
  const { folder: dataDir } = makeNetworkFolder();
  const na = await startTestAuthority({ dataDir, flags: { store: url } });
  await joinedNode(na);
  await na.stop();
  rmSync(dataDir, { recursive: true });
  return url;
}
