/** The head of a state in a database detects a restored older database, and one with another history. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import pg from 'pg';
import { openHeadFile } from '../src/server/head/open.ts';
import { parseStoreAddress } from '../src/store/postgresql/address.ts';
import { openPostgresqlSource } from '../src/store/postgresql/source.ts';
import { summarize } from '../src/store/stream/write.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { NO_LIMITS, runProgram, startChildServer } from './support/child-server.ts';
import { networkFolder, ownFolder, ownNetwork } from './support/folders.ts';
import { placeOf, testInstances } from './support/instances.ts';
import { startCluster } from './support/postgresql.ts';
import { migratedDatabase } from './support/postgresql-store.ts';
import { findPostgresql } from './support/programs.ts';
import { get, heartbeat, joinedNode, operate, outcome } from './support/requests.ts';
import { until } from './support/until.ts';

const cluster = await startCluster();
const programs = findPostgresql() ?? '';
const scratch = ownFolder();
const head = join(scratch, 'head');
const dataDir = ownNetwork();
let url: string;
let first: TestAuthority;

after(() => cluster[Symbol.asyncDispose]());

function start(store: string, { hasHead = true, newHead = false } = {}): Promise<TestAuthority> {
  return startTestAuthority({
    dataDir,
    flags: { store, newHead },
    ...(first && { clock: first.clock }),
    ...(hasHead && { environment: { MESH_HEAD_FILE: head } }),
  });
}

function headNow() {
  return JSON.parse(readFileSync(head, 'utf8'));
}

/** What restoring a backup of the database server would give. */
function copyOf(address: string): Promise<string> {
  return cluster.createDatabase(`template ${new URL(address).pathname.slice(1)}`);
}

async function contentOf(address: string) {
  const source = await openPostgresqlSource(parseStoreAddress(address, {}));
  const content = [source.facts.revision, await summarize(source)];
  await source.close();
  return JSON.stringify(content);
}

suite('the head file', { concurrency: false }, () => {
  before(async () => {
    url = await migratedDatabase(cluster);
    await (await start(url)).stop();
    rmSync(head);
    await assert.rejects(start(url), /is missing: put it back\. .*start once with --new-head/);
    first = await start(url, { newHead: true });
  });
  after(() => first.stop());

  test('contains each revocation before it is answered, and everything else at the end', async () => {
    const node = await joinedNode(first);
    await operate(first, '/admin/revoke', { cert_id: node.certId, reason: 'superseded' });
    const { crl_sequence, audit_length } = headNow();
    assert.equal(crl_sequence, 1);
    await joinedNode(first);
    await first.stop();
    assert.ok(headNow().audit_length > audit_length);
    first = await start(url);
    const { status, text } = await get(first, '/readyz');
    assert.equal(status, 200, text);
  });

  test('is written, and released for the next active instance, before another may write', async () => {
    const next = new pg.Client(url);
    await next.connect();
    await next.query('listen mesh_na_lease');
    await joinedNode(first);
    const released = once(next, 'notification').then(() => openHeadFile(head).release());
    await Promise.all([released, first.stop()]);
    await next.end();
    first = await start(url);
  });

  test('stops a restored older database, and does not change it', async () => {
    const node = await joinedNode(first);
    await first.stop();
    const older = await copyOf(url);
    first = await start(url);
    await operate(first, '/admin/revoke', { cert_id: node.certId, reason: 'superseded' });
    await first.stop();
    const [headBefore, contentBefore] = [readFileSync(head, 'utf8'), await contentOf(older)];

    await assert.rejects(start(older), /The state is older than the head in/);
    assert.equal(readFileSync(head, 'utf8'), headBefore);
    assert.equal(await contentOf(older), contentBefore);
    const doctor = await runProgram(
      ['doctor', '--data-dir', dataDir, '--store', older, '--head-file', head, '--json'],
      NO_LIMITS,
    );
    const [found] = JSON.parse(doctor.stdout).checks.filter(
      ({ check }: { check: string }) => check === 'head',
    );
    assert.equal(found.outcome, 'wrong');
    first = await start(url);
    const { status, text } = await get(first, '/readyz');
    assert.equal(status, 200, text);
  });

  test('refuses a database of another history', async () => {
    await first.stop();
    const other = await copyOf(url);
    const forked = await start(other, { hasHead: false });
    for (let i = 0; i < 3; i += 1) await joinedNode(forked);
    await forked.stop();
    first = await start(url);
    await joinedNode(first);
    await first.stop();
    await assert.rejects(start(other), /belongs to a different history/);
    first = await start(url);
  });
});

test('an instance whose turn comes continues with the head of the previous one', async () => {
  await using instances = await testInstances(cluster);
  const kept = join(scratch, 'shared-head');
  const environment = { MESH_HEAD_FILE: kept };
  const serve = ['serve', '--data-dir', instances.folder, '--port', '0', '--new-head'];
  const made = await runProgram(
    serve,
    { ...NO_LIMITS, ...environment, MESH_STORE: instances.url },
    (process) => {
      process.stdout?.on('data', (text: string) => {
        if (text.includes(' is served on ')) process.kill('SIGTERM');
      });
    },
  );
  assert.equal(made.code, 0, made.stderr);
  const active = await instances.start(environment);
  const next = await instances.start(environment);
  const [node, other] = [await joinedNode(active.na), await joinedNode(active.na)];
  assert.equal(
    outcome(await operate(active.na, '/admin/revoke', { cert_id: other.certId })),
    '200',
  );
  const off = '/admin/operator-keys/ops-standard/revoke';
  assert.equal(outcome(await operate(active.na, off, {})), '200');
  await until(async () => next.log().includes('The standby state is ready'));
  assert.equal((await active.end('SIGTERM')).code, 0);
  const left = JSON.parse(readFileSync(kept, 'utf8'));
  await until(async () => (await placeOf(next)).ready);
  const taken = JSON.parse(readFileSync(kept, 'utf8'));
  assert.notEqual(taken.written_at, left.written_at, 'it is written anew');
  for (const { crl_sequence, feed_sequence, operator_keys_off } of [left, taken]) {
    assert.deepEqual([crl_sequence, feed_sequence, operator_keys_off], [1, 0, ['ops-standard']]);
  }
  assert.equal(outcome(await operate(next.na, '/admin/revoke', { cert_id: node.certId })), '200');
  const now = JSON.parse(readFileSync(kept, 'utf8'));
  assert.equal(now.crl_sequence, 2);
  assert.ok(now.revision > taken.revision);
});

for (const [what, hasOther, expected] of [
  ['lacks the list', false, /^The database lacks revocation list 1, .*: its newest is list 0\./],
  [
    'has another list of that number',
    true,
    /^The database lacks revocation list 1, .* not revoked/,
  ],
] as const) {
  test(`an instance whose turn comes serves no database that ${what} that it has shown, also without a head`, async () => {
    await using instances = await testInstances(cluster);
    const linked = { MESH_LINK: '127.0.0.1:0', MESH_LEASE_MS: '5000' };
    const first = await instances.start(linked);
    const [node, other] = [await joinedNode(first.na), await joinedNode(first.na)];
    assert.equal((await first.end('SIGTERM')).code, 0);
    const older = await copyOf(instances.url);
    if (hasOther) await revokedIn(older, instances.folder, other.certId);
    const active = await instances.start(linked);
    const next = await instances.start(linked);
    await until(async () => (await placeOf(next)).ready);
    await operate(active.na, '/admin/revoke', { cert_id: node.certId, reason: 'superseded' });
    assert.equal((await get(next.na, '/crl')).body.sequence, 1);
    await active.end('SIGKILL');
    const [name, put] = [instances.url, older].map((url) => new URL(url).pathname.slice(1));
    const others = `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`;
    await cluster.query('postgres', `alter database ${name} allow_connections false`);
    await cluster.query('postgres', others);
    await cluster.query('postgres', `alter database ${name} rename to ${name}_lost`);
    await cluster.query('postgres', `alter database ${put} rename to ${name}`);
    let ready = await get(next.na, '/readyz');
    await until(async () => {
      ready = await get(next.na, '/readyz');
      return outcome(ready) === '503 restore_pending';
    });
    const { reason } = ready.body.error.details;
    assert.match(reason, expected);
    assert.equal(outcome(await heartbeat(next.na, node)), '503 restore_pending');
    for (const path of [
      '/crl',
      '/policy',
      '/recognition-graph',
      '/connectome.json',
      '/dashboard',
    ]) {
      assert.equal(outcome(await get(next.na, path)), '503 restore_pending', path);
    }
  });
}

test('a copy of a served database is stopped before it answers, in a database and in a folder', async () => {
  await using folder = await networkFolder('alpha');
  const [served, copied] = [await migratedDatabase(cluster), await cluster.createDatabase()];
  const kept = join(scratch, 'one-head');
  const environment = { ...NO_LIMITS, MESH_STORE: served, MESH_HEAD_FILE: kept };
  const args = ['--new-head'];
  const first = await startChildServer(folder.path, { environment, args });
  const [node, other] = [await joinedNode(first.na), await joinedNode(first.na)];
  // The head is written before this is answered.
  assert.equal(outcome(await operate(first.na, '/admin/revoke', { cert_id: other.certId })), '200');
  dumpInto(copied, served);
  const copy = join(scratch, 'copy');
  cpSync(folder.path, copy, { recursive: true });
  const [headBefore, contentBefore] = [readFileSync(kept, 'utf8'), await contentOf(copied)];

  const serve = ['serve', '--data-dir', copy, '--port', '0', '--json'];
  async function assertStopped(store: string): Promise<void> {
    const { code, stdout, stderr } = await runProgram(serve, { ...environment, MESH_STORE: store });
    assert.equal(code, 3, stderr);
    assert.match(stderr, /head file .* is in use by another process \(pid \d+ on /);
    assert.equal(stdout, '');
  }
  await assertStopped(copied);
  assert.equal(await contentOf(copied), contentBefore);
  const places = ['--from', copied, '--to', `lmdb:${copy}`, '--data-dir', copy];
  const move = ['store', 'move', ...places, '--yes'];
  const moved = await runProgram(move);
  assert.equal(moved.code, 0, moved.stderr);
  await assertStopped('');
  assert.equal(readFileSync(kept, 'utf8'), headBefore);

  assert.equal(outcome(await heartbeat(first.na, node)), '200');
  // A copy on another machine, which the lock does not cover, has written its own head.
  writeFileSync(kept, headBefore.replace(/"revision":\d+/, '"revision":1000'));
  const revoke = operate(first.na, '/admin/revoke', { cert_id: node.certId });
  await assert.rejects(revoke.then(outcome));
  const { code, stderr } = await first.ended;
  assert.equal(code, 1);
  assert.match(
    stderr,
    /head file .* was written by another process: a copy .* is being served elsewhere/,
  );
});

/** Copies what `pg_dump` reads while the database is in use. */
function dumpInto(copy: string, original: string): void {
  const dump = execFileSync(join(programs, 'pg_dump'), [`--dbname=${original}`]);
  const into = ['--quiet', '--set=ON_ERROR_STOP=1', `--dbname=${copy}`];
  execFileSync(join(programs, 'psql'), into, { input: dump, stdio: ['pipe', 'ignore', 'pipe'] });
}

/** Revokes with an instance that serves only this database. */
async function revokedIn(url: string, folder: string, certId: string): Promise<void> {
  const server = await startChildServer(folder, { environment: { ...NO_LIMITS, MESH_STORE: url } });
  assert.equal(outcome(await operate(server.na, '/admin/revoke', { cert_id: certId })), '200');
  assert.equal((await server.end('SIGTERM')).code, 0);
}
