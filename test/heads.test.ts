/** The head file, a second record of the state's position, detects a restored older copy, a second copy and a fork. */
import assert from 'node:assert/strict';
import {
  cpSync,
  existsSync,
  linkSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { openHeadFile } from '../src/server/head/open.ts';
import { startTestAuthority, type TestAuthority, type TestOptions } from './support/authority.ts';
import { makeNetworkFolder, ownFolder } from './support/folders.ts';
import { get, joinedNode, operate } from './support/requests.ts';
import { LMDB_ONLY } from './support/test-stores.ts';

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
