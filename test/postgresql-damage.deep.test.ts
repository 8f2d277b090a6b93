/**
 * A row of the database that a disk has damaged: which commands find it, what they advise, and that the advice helps.
 */
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { startTestAuthority } from './support/authority.ts';
import { runProgram } from './support/child-server.ts';
import { changeFile, losePage, spoilPage } from './support/damaged-page.ts';
import { ownFolder, ownNetwork } from './support/folders.ts';
import { startCluster, type TestCluster } from './support/postgresql.ts';
import { migratedDatabase } from './support/postgresql-store.ts';
import { joinedNode } from './support/requests.ts';

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
