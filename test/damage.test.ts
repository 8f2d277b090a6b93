/** Damage to the stored state, and older copies of it: what finds them, how they are named, and that answers stay right. */
import assert from 'node:assert/strict';
import {
  closeSync,
  cpSync,
  existsSync,
  linkSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import type { Database, Key } from 'lmdb';
import { verifySignature } from '../src/base/crypto/ed25519.ts';
import { soundTables } from '../src/maintenance/backup/check-state.ts';
import { openHeadFile } from '../src/server/head/open.ts';
import { openLmdbSource } from '../src/store/lmdb/source.ts';
import { openEnvironment, openTables } from '../src/store/lmdb/tables.ts';
import { startTestAuthority, type TestAuthority, type TestOptions } from './support/authority.ts';
import { HOUR } from './support/clock.ts';
import { endOf } from './support/failed-command.ts';
import { makeNetworkFolder, ownFolder, ownNetwork } from './support/folders.ts';
import { get, heartbeat, joinedNode, operate, outcome } from './support/requests.ts';
import { LMDB_ONLY } from './support/test-stores.ts';

const scratch = ownFolder();
const dataDir = ownNetwork();
let certId: string;

before(async () => {
  const na = await startTestAuthority({ dataDir });
  ({ certId } = await joinedNode(na));
  await operate(na, '/admin/invite');
  await na.stop();
});

const rowOf = (id: string) =>
  `the row ["certificate","${id}"] of table subjects does not match its checksum`;

test('a changed byte makes the backups of a running service fail, which name the row, until it is repaired', async () => {
  const backups = mkdtempSync(join(scratch, 'backups-'));
  await using na = await startTestAuthority({ flags: { backupTo: backups, backupEvery: '1h' } });
  const node = await joinedNode(na);
  await na.backUp();
  const mend = await damageRow(na.dataDir, node.certId);
  // Before the list is renewed, which would copy the damaged page.
  na.clock.advance(HOUR);
  await na.clock.idle();
  assert.ok(
    na.logLines.some((line) => /backup failed/.test(line) && line.includes(rowOf(node.certId))),
  );
  assert.match((await get(na, '/metrics')).text, /^mesh_na_backup_failures_total 1$/m);
  assert.equal(outcome(await heartbeat(na, node)), '200');
  assert.equal((await get(na, '/readyz')).status, 200);
  assert.equal(readdirSync(backups).length, 1);

  mend();
  na.clock.advance(HOUR);
  await na.backUp();
  assert.equal(readdirSync(backups).length, 2);
});

test('a state that is served is sound', async () => {
  await using na = await startTestAuthority({ dataDir });
  assert.equal(await problemOf(na.dataDir), null);
});

test('a check names the damaged row, and no start is possible from it', async () => {
  const folder = copied();
  await damageRow(folder, certId);
  const verified = await endOf(['store', 'verify', '--data-dir', folder]);
  assert.equal(verified.exit, 4);
  assert.ok(verified.message.includes(rowOf(certId)), verified.message);
  await assert.rejects(startTestAuthority({ dataDir: folder }), ({ message }: Error) =>
    message.includes(rowOf(certId)),
  );
});

for (const [place, table, sentence] of [
  ['first', 'audit', /an audit entry is missing/],
  ['last', 'audit', /the last audit entry is missing|holds \d+ entries where \d+ were stored/],
  ['first', 'subjects', /table subjects holds \d+ entries where \d+ were stored/],
  ['last', 'nonces', /table nonces holds \d+ entries where \d+ were stored/],
] as const) {
  test(`a missing row is damage: the ${place} of ${table}`, async () => {
    const folder = copied();
    const env = openEnvironment(folder, false);
    const opened = openTables(env)[table] as Database<Buffer, Key>;
    const [key = ''] = opened.getKeys({ limit: 1, reverse: place === 'last' });
    assert.equal(await opened.remove(key), true);
    await env.close();
    assert.match(String(await problemOf(folder)), sentence);
  });
}

test('a command that was removed is refused as unknown', async () => {
  const { exit, message } = await endOf(['store', 'salvage', '--data-dir', dataDir]);
  assert.equal(exit, 2);
  assert.match(message, /unknown command 'salvage'/);
});

function copied(): string {
  const folder = mkdtempSync(join(scratch, 'copy-'));
  cpSync(dataDir, folder, { recursive: true });
  return folder;
}

/** What `store verify` would say about the state; null if it is sound. */
async function problemOf(folder: string): Promise<string | null> {
  try {
    const source = await openLmdbSource(folder);
    await soundTables(source, verifySignature).finally(() => source.close());
    return null;
  } catch (cause) {
    return String(cause);
  }
}

/** Changes a byte of the certificate's row in the file itself; returns a function that undoes it. */
async function damageRow(folder: string, id: string): Promise<() => void> {
  const path = join(folder, 'state', 'data.mdb');
  const key = `certificate\0${id}`;
  const bytes = readFileSync(path);
  const put = (at: number, byte: number) => {
    const file = openSync(path, 'r+');
    writeSync(file, Buffer.of(byte), 0, 1, at);
    closeSync(file);
  };
  // Free pages contain earlier copies of the row.
  for (let found = bytes.indexOf(key); found >= 0; found = bytes.indexOf(key, found + 1)) {
    const at = found + key.length + 30;
    const byte = bytes.readUInt8(at);
    put(at, byte ^ 8);
    if ((await problemOf(folder)) !== null) return () => put(at, byte);
    put(at, byte);
  }
  throw new Error('The row is nowhere');
}

// The head file, a second record of the state's position, detects a restored older copy, a second copy and a fork.

const folder = ownFolder();
const head = join(folder, 'head');
let first: TestAuthority;

function start(options: TestOptions = {}): Promise<TestAuthority> {
  const { dataDir = first.dataDir } = options;
  return startTestAuthority({
    clock: first.clock,
    ...options,
    dataDir,
    environment: { MESH_HEAD_FILE: head, ...options.environment },
  });
}

function headNow() {
  return JSON.parse(readFileSync(head, 'utf8'));
}

suite('the head file', { concurrency: false, ...LMDB_ONLY }, () => {
  before(async () => {
    const { folder: dataDir } = makeNetworkFolder();
    const options = { dataDir, environment: { MESH_HEAD_FILE: head } };
    // On its first start, an empty state creates its head file.
    await (await startTestAuthority(options)).stop();
    rmSync(head);
    await assert.rejects(
      startTestAuthority(options),
      /is missing: put it back\. .*start once with --new-head/,
    );
    first = await startTestAuthority({ ...options, flags: { newHead: true } });
  });

  after(async () => {
    await first.stop();
    rmSync(first.dataDir, { recursive: true, force: true });
  });

  test('contains each revocation before it is answered, and everything else at the end', async () => {
    const node = await joinedNode(first);
    await operate(first, '/admin/revoke', { cert_id: node.certId, reason: 'superseded' });
    const { crl_sequence, audit_length } = headNow();
    assert.equal(crl_sequence, 1);
    await joinedNode(first);
    await first.stop();
    assert.ok(headNow().audit_length > audit_length);
    first = await start();
    assert.equal((await get(first, '/readyz')).status, 200);
  });

  test('is written and locked without following a planted link', async () => {
    await first.stop();
    const victim = join(folder, 'victim');
    writeFileSync(victim, 'precious\n');
    const draft = join(folder, '.head.new');
    symlinkSync(victim, draft);
    first = await start();
    await joinedNode(first);
    await first.stop();
    assert.equal(readFileSync(victim, 'utf8'), 'precious\n');
    rmSync(draft);
    const lock = `${head}.lock`;
    rmSync(lock);
    for (const plant of [
      () => symlinkSync(victim, lock),
      () => symlinkSync(join(folder, 'absent'), lock),
      () => linkSync(victim, lock),
      // One byte more than a lock can have; after a power failure, a lock may be zeros.
      () => writeFileSync(lock, Buffer.alloc(400)),
    ]) {
      plant();
      await assert.rejects(start(), /head\.lock is not a lock of this program, and stays as it is/);
      assert.equal(readFileSync(victim, 'utf8'), 'precious\n');
      rmSync(lock);
    }
    assert.ok(!existsSync(join(folder, 'absent')));
    first = await start();
    assert.deepEqual(
      readdirSync(folder).filter((name) => name.startsWith('.head')),
      [],
    );
  });

  test('stops a copy that is started at the same time, before it answers', async () => {
    const copy = join(folder, 'copy');
    cpSync(first.dataDir, copy, { recursive: true });
    await assert.rejects(start({ dataDir: copy }), /head file .* is in use by another process/);
  });

  test('stops a restored older copy, and leaves it and the head as they are', async () => {
    const node = await joinedNode(first);
    await first.stop();
    const old = join(folder, 'old');
    cpSync(first.dataDir, old, { recursive: true });
    first = await start();
    await operate(first, '/admin/revoke', { cert_id: node.certId, reason: 'superseded' });
    await first.stop();
    const headBefore = readFileSync(head, 'utf8');
    const state = join(old, 'state', 'data.mdb');
    const fileBefore = readFileSync(state).length;

    await assert.rejects(
      start({ dataDir: old }),
      /^Error: The state is older than the head in .*, which recorded revision \d+, while the state ends at \d+: put the newer state in its place, or restore it/,
    );
    assert.equal(readFileSync(head, 'utf8'), headBefore, 'the head stays as it was');
    assert.equal(readFileSync(state).length, fileBefore);
    first = await start();
    assert.equal((await get(first, '/readyz')).status, 200);
  });

  test('refuses the state of another history, an altered head, and --new-head without need', async () => {
    await first.stop();
    const kept = readFileSync(head, 'utf8');
    const other = makeNetworkFolder().folder;
    cpSync(join(first.dataDir, 'keys'), join(other, 'keys'), { recursive: true });
    cpSync(join(first.dataDir, 'genesis.json'), join(other, 'genesis.json'));
    const forked = await startTestAuthority({ dataDir: other, clock: first.clock });
    for (let i = 0; i < 16; i += 1) await joinedNode(forked);
    await forked.stop();
    await assert.rejects(start({ dataDir: other }), /belongs to a different history/);
    writeFileSync(head, kept.replace(/"revision":\d+/, '"revision":1'));
    await assert.rejects(start(), /does not hold a head that this authority has signed/);
    writeFileSync(head, kept);
    await assert.rejects(start({ flags: { newHead: true } }), /remove it/);
    assert.ok(existsSync(head));
    rmSync(other, { recursive: true, force: true });
    first = await start();
  });
});

test('is not overwritten if another process writes it during a sync', async () => {
  const path = join(ownFolder(), 'head');
  const file = openHeadFile(path);
  await file.write('ours');
  const written = file.write('ours again');
  writeFileSync(path, 'theirs');
  await assert.rejects(written, /was written by another process/);
  assert.equal(readFileSync(path, 'utf8'), 'theirs');
  assert.deepEqual(readdirSync(dirname(path)).sort(), ['head', 'head.lock']);
  file.release();
});
