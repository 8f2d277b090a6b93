/**
 * A row of the database that a disk has damaged: which commands find it, what they advise, and that the advice helps.
 */
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { verifySignature } from '../src/base/crypto/ed25519.ts';
import { soundTables } from '../src/maintenance/backup/check-state.ts';
import { parseStoreAddress } from '../src/store/postgresql/address.ts';
import { unreadableBecause } from '../src/store/postgresql/connect.ts';
import { openPostgresqlSource } from '../src/store/postgresql/source.ts';
import { startTestAuthority } from './support/authority.ts';
import { failIn, mayTrace } from './support/broken-disk.ts';
import { runProgram } from './support/child-server.ts';
import { ownFolder, ownNetwork } from './support/folders.ts';
import { startCluster, type TestCluster } from './support/postgresql.ts';
import { migratedDatabase } from './support/postgresql-store.ts';
import { get, heartbeat, joinedNode, operate, outcome } from './support/requests.ts';

const cluster = await startCluster();
const scratch = ownFolder();
const dataDir = ownNetwork();
let standby: TestCluster;
let url: string;
/** How every finding names the row. */
let row: string;

before(async () => {
  url = await migratedDatabase(cluster);
  const na = await startTestAuthority({ dataDir, flags: { store: url } });
  const nodes = [await joinedNode(na), await joinedNode(na)];
  await na.stop();
  standby = await startCluster({ standbyOf: cluster });
  const certId = String(nodes[0]?.certId);
  await damage(`certificate${ID_OF_36_BYTES}${certId}`);
  row = `the row ["certificate","${certId}"] of table subjects does not match its checksum`;
});
after(async () => {
  for (const each of [standby, cluster]) await each[Symbol.asyncDispose]();
});

/** How PostgreSQL encodes the length of a short text. */
const ID_OF_36_BYTES = String.fromCharCode(((36 + 1) << 1) | 1);
/** From the end of the id into the snapshot, past the version, the revision, and the length of the snapshot. */
const INTO_SNAPSHOT = 64;

/** Flips a bit in the row with this key. */
function damage(key: string): Promise<void> {
  return changeFile(cluster, url, 'subjects', (bytes) => {
    const at = bytes.indexOf(key);
    assert.ok(at >= 0 && bytes.indexOf(key, at + 1) < 0, 'the row lies in one place');
    const place = at + key.length + INTO_SNAPSHOT;
    bytes.writeUInt8(bytes.readUInt8(place) ^ 8, place);
  });
}

const onIt = () => ['--data-dir', dataDir, '--store', url];

suite('a damaged row in the database', { concurrency: false }, () => {
  test('is found by doctor, which recommends the standby or a backup rather than cures for folders', async () => {
    const { code, stdout, stderr } = await runProgram(['doctor', ...onIt(), '--deep']);
    assert.equal(code, 4, stderr);
    const line = stdout.split('\n').find((text) => /^wrong +rows /.test(text)) ?? '';
    assert.ok(line.includes(row), line);
    assert.match(line, /Promote a standby .* restore it from a backup into an empty database/);
  });

  test('is named by store verify and by a start, which is refused', async () => {
    const [verified, started] = await Promise.all([
      runProgram(['store', 'verify', ...onIt()]),
      runProgram(['serve', ...onIt(), '--port', '0']),
    ]);
    assert.deepEqual([verified.code, started.code], [4, 3]);
    for (const { stderr } of [verified, started]) assert.ok(stderr.includes(row), stderr);
  });

  test('is not backed up, and nothing is left of the attempt', async () => {
    const folder = join(scratch, 'backups');
    mkdirSync(folder);
    const { code, stderr } = await runProgram([
      ...['backup', 'create', ...onIt()],
      ...['--to', join(folder, 'mesh.backup')],
    ]);
    assert.equal(code, 3);
    assert.ok(stderr.includes(row), stderr);
    assert.deepEqual(readdirSync(folder), []);
  });

  test('has not reached the standby, whose state is sound once it is promoted', async () => {
    const place = ['--data-dir', dataDir, '--store', standby.url(databaseOf(url))];
    const before = await runProgram(['store', 'verify', ...place]);
    assert.equal(before.code, 3, before.stdout);
    assert.match(before.stderr, /is a standby, which cannot be written to$/m);
    await standby.query('postgres', 'select pg_promote()');
    const promoted = await runProgram(['store', 'verify', ...place]);
    assert.equal(promoted.code, 0, promoted.stderr);
    assert.match(promoted.stdout, /^The state of "alpha" is sound /);
  });
});

suite('a page of meta in the database', { concurrency: false }, () => {
  const toDoctor = (stdout: string) =>
    stdout.split('\n').find((text) => /^wrong +store /.test(text)) ?? '';

  test('that cannot be read is damage for doctor, store verify, a backup and a start', async () => {
    await changeFile(cluster, url, 'meta', spoilPage);
    const [examined, ...others] = await Promise.all([
      runProgram(['doctor', ...onIt()]),
      runProgram(['store', 'verify', ...onIt()]),
      runProgram(['serve', ...onIt(), '--port', '0']),
      runProgram(['backup', 'create', ...onIt(), '--to', join(scratch, 'none')]),
    ]);
    const sentence = /stored state is damaged: table meta cannot be read \(invalid page in block 0/;
    assert.match(toDoctor(examined.stdout), sentence);
    assert.match(toDoctor(examined.stdout), /Promote a standby .* restore it from a backup into/);
    for (const { stderr } of others) assert.match(stderr, sentence);
    const codes = [examined, ...others].map(({ code }) => code);
    assert.deepEqual(codes, [4, 4, 3, 3]);
  });

  test('that the disk has lost is damage too, and no reason to create the tables', async () => {
    await changeFile(cluster, url, 'meta', losePage);
    const [examined, migrated] = await Promise.all([
      runProgram(['doctor', ...onIt()]),
      runProgram(['store', 'migrate', ...onIt()]),
    ]);
    const sentence = /stored state is damaged: table meta has no schema version/;
    assert.match(toDoctor(examined.stdout), sentence);
    assert.doesNotMatch(examined.stdout, /store migrate/);
    assert.match(migrated.stderr, sentence);
    assert.equal(migrated.code, 3);
  });
});

function databaseOf(address: string): string {
  return new URL(address).pathname.slice(1);
}

// Rows and files of a database that a disk has damaged or lost: reading the state, as a backup does, finds them.

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

/** Changes the file of a table of the state while the server is stopped. */
function changeFile(
  cluster: TestCluster,
  url: string,
  table: string,
  change: (bytes: Buffer, path: string) => void,
): Promise<void> {
  return whileStopped(cluster, url, table, (path) => {
    const bytes = readFileSync(path);
    change(bytes, path);
    writeFileSync(path, bytes);
  });
}

/** Removes the file of a table of the state while the server is stopped. */
function loseFile(cluster: TestCluster, url: string, table: string): Promise<void> {
  return whileStopped(cluster, url, table, (path) => rmSync(path));
}

async function whileStopped(
  cluster: TestCluster,
  url: string,
  table: string,
  work: (path: string) => void,
): Promise<void> {
  const [found] = await cluster.query(
    new URL(url).pathname.slice(1),
    `select pg_relation_filepath('mesh_na.${table}') as path`,
  );
  await cluster.stop('SIGINT');
  work(join(cluster.socketFolder, 'data', String(found?.path)));
  await cluster.start();
}

const PAGE_BYTES = 8192;
const HEADER_BYTES = 24;

/** Damages a page so that the server refuses to read it. */
function spoilPage(bytes: Buffer): void {
  bytes.fill(0xff, 0, HEADER_BYTES);
}

/** Makes a page look as if it was never written: the server considers it empty. */
function losePage(bytes: Buffer): void {
  bytes.fill(0, 0, PAGE_BYTES);
}
