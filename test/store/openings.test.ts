/** Other processes open the database of a folder while its owner commits to it. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { createCommits, whileNobodyCommits } from '../../src/store/lmdb/openings.ts';
import { openLmdbStore } from '../../src/store/lmdb/store.ts';
import { spawnNode } from '../support/processes.ts';
import { LOADER, modulePath } from '../support/project.ts';
import { smallDisk } from '../support/small-disk.ts';
import { loadAll } from '../support/stored.ts';
import { created, unit } from './conformance.ts';

const { tryLock, unlock }: typeof import('fs-native-extensions') = createRequire(import.meta.url)(
  'fs-native-extensions',
);
/** The offsets of the locked bytes in the file, as in the module. */
const TURN = 2 ** 40;
const ACCESS = TURN + 1;
/** Without the locks, commits are lost within this many openings. */
const OPENINGS = 1000;

function madeFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'mesh-na-openings-'));
  const database = join(folder, 'state', 'data.mdb');
  mkdirSync(join(folder, 'state'));
  writeFileSync(database, '');
  return {
    folder,
    /** Opens the file as another process would, to see the locks. */
    openFile: () => openSync(database, 'r+'),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** A commit that continues until the test ends it. */
function heldCommit() {
  let end: () => void = () => undefined;
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const commit = {
    isBegun: false,
    end: () => end(),
    run() {
      commit.isBegun = true;
      return ended;
    },
  };
  return commit;
}

test('no one opens a database while a commit is under way', async () => {
  using place = madeFolder();
  const commits = createCommits(place.folder);
  const other = place.openFile();
  const [first, second] = [heldCommit(), heldCommit()];
  const running = [commits.run(first.run), commits.run(second.run)];
  assert.ok(first.isBegun && second.isBegun, 'they begin in the same turn');
  first.end();
  await running[0];
  assert.ok(!tryLock(other, ACCESS, 1), 'one is under way still');
  second.end();
  await running[1];
  assert.ok(tryLock(other, ACCESS, 1));
  closeSync(other);
  commits.close();
});

test('commits wait while someone opens, and then run in order', async () => {
  using place = madeFolder();
  const commits = createCommits(place.folder);
  const other = place.openFile();
  assert.ok(tryLock(other, TURN, 1) && tryLock(other, ACCESS, 1));
  const order: number[] = [];
  const running = [1, 2, 3].map((number) =>
    commits.run(async () => {
      order.push(number);
    }),
  );
  for (let turns = 0; turns < 20; turns += 1) await nextTurn();
  assert.deepEqual(order, []);
  closeSync(other);
  await Promise.all(running);
  assert.deepEqual(order, [1, 2, 3]);
  commits.close();
});

test('opening goes before further commits, but does not delay them for long', async () => {
  using place = madeFolder();
  const commits = createCommits(place.folder);
  const other = place.openFile();
  const before = heldCommit();
  const running = commits.run(before.run);
  assert.ok(tryLock(other, TURN, 1));
  const later = heldCommit();
  const waiting = commits.run(later.run);
  before.end();
  await running;
  assert.ok(!later.isBegun);
  assert.ok(tryLock(other, ACCESS, 1), 'a commit that came later does not stand in the way');
  unlock(other, ACCESS, 1);
  later.end();
  await waiting;
  await commits.run(async () => undefined);
  closeSync(other);
  commits.close();
});

test('the process that commits opens the database without waiting for itself', async () => {
  using place = madeFolder();
  const commits = createCommits(place.folder);
  const held = heldCommit();
  const running = commits.run(held.run);
  assert.equal(
    whileNobodyCommits(place.folder, () => 'opened'),
    'opened',
  );
  held.end();
  await running;
  commits.close();
});

/** On a disk in memory, which responds at once, openings and commits often coincide. */
test('everything acknowledged while another process repeatedly opened the database is there', async (t) => {
  await using disk = await smallDisk('64m');
  if (disk === null) return t.skip('this user may not mount a disk in a namespace of their own');
  const store = openLmdbStore(disk.path);
  const script = `
    import { readAuditEntries } from '${pathToFileURL(modulePath('src/store/lmdb/source.ts'))}';
    for (let n = 0; n < ${OPENINGS}; n += 1) [...readAuditEntries(process.argv[1])];
  `;
  const args = [...LOADER, '--input-type=module', '--eval', script, disk.path];
  const child = spawnNode(args, { stdio: ['ignore', 'ignore', 'inherit'] });
  let isOver = false;
  const ended = once(child, 'exit').finally(() => {
    isOver = true;
  });
  let count = 0;
  for (; !isOver; count += 1) {
    const subjects = [created('c', `n-${count}`, {})];
    await store.commit(unit({ subjects }));
  }
  assert.deepEqual(await ended, [0, null]);
  await store.close();
  const reopened = openLmdbStore(disk.path);
  const { subjects } = await loadAll(reopened);
  assert.equal(subjects.length, count);
  await reopened.close();
});

test('a database on a read-only file system is opened without locks', async (t) => {
  await using disk = await smallDisk('1m');
  if (disk === null) return t.skip('this user may not mount a disk in a namespace of their own');
  mkdirSync(join(disk.path, 'state'));
  writeFileSync(join(disk.path, 'state', 'data.mdb'), '');
  disk.lock(true);
  assert.equal(
    whileNobodyCommits(disk.path, () => 'opened'),
    'opened',
  );
});
