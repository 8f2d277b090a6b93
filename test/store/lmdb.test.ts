import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { serialize } from 'node:v8';
import { open as openEnvironment } from 'lmdb';
import { createCommits, whileNobodyCommits } from '../../src/store/lmdb/openings.ts';
import { openLmdbSource, readAuditEntries } from '../../src/store/lmdb/source.ts';
import { openLmdbStore } from '../../src/store/lmdb/store.ts';
import type { SpentNonce, Store, Unit } from '../../src/store/store.ts';
import { spawnNode } from '../support/processes.ts';
import { LOADER, modulePath } from '../support/project.ts';
import { smallDisk } from '../support/small-disk.ts';
import { loadAll } from '../support/stored.ts';
import { created, type OpenedStore, seal, testStore, unit } from './conformance.ts';

const ALPHA = { network_name: 'alpha', root_public_key: 'root', authority_public_key: 'authority' };

testStore({ name: 'LMDB', open });

test('a process that has the folder keeps every other one out, until it dies', async () => {
  await using place = await open();
  await place.store.close();
  const holder = await startHolder(place.folder, []);
  const cure = `stop that one, or name another folder than ${place.folder} by --data-dir`;
  assert.throws(() => openLmdbStore(place.folder), {
    message: `The data directory is in use by another process (pid ${holder.pid} on ${hostname()}); ${cure}`,
  });
  await kill(holder);
  const reopened = await place.reopen();
  assert.equal((await reopened.load()).previousOwner, 'lost');
});

test('the audit log is read while another process writes it', async () => {
  await using place = await open();
  await place.store.close();
  const entry = { event_id: 'e', event_type: 'certificate_issued', details: {} };
  const chained = { ...entry, created_at: '2026-01-01T00:00:00Z', prev_hash: 'p', hash: 'h' };
  const holder = await startHolder(place.folder, [unit({ audit: [seal(chained)] })]);
  assert.deepEqual([...readAuditEntries(place.folder)], [chained]);
  await kill(holder);
});

test('a process that lost the folder can no longer write to it', async () => {
  await using place = await open();
  await place.store.commit(unit({ subjects: [created('c', 'before', {})] }));
  const env = environmentIn(place.folder);
  const meta = env.openDB<unknown, string>({ name: 'meta', useVersions: true });
  await meta.put('owner', { pid: 1, startedAt: 'another process', held: true }, 1_000_000);

  const late: Unit = unit({ subjects: [created('c', 'late', {})] });
  await assert.rejects(place.store.commit(late), {
    message: 'Another process has taken over the data directory',
  });
  await assert.rejects(place.store.commit(late), 'nothing is taken after a failure');
  assert.equal(place.store.health(), 'Another process has taken over the data directory');
  const row = { id: 'before', lastSeen: 1, status: '', remoteAddr: '', newestSignedAt: 0 };
  await assert.rejects(place.store.touchMany([row], []));
  const { subjects, liveness } = await loadAll(place.store);
  assert.deepEqual(
    Array.from(subjects, ({ id }) => id),
    ['before'],
  );
  assert.deepEqual([...liveness], []);
  await meta.put('owner', { pid: 1, startedAt: 'another process', held: false }, 1_000_001);
  await env.close();
});

test('snapshots of one kind with different members are restored, whenever their shapes were stored', async () => {
  await using place = await open();
  const contexts = [
    { text: 'x'.repeat(100_000), none: undefined, big: 2n ** 60n, negative: -1.5 },
    { nested: { list: [{ deep: 'é😀' }], none: null } },
    { negative: -1.5, big: 2n ** 60n },
    {},
  ];
  let { store } = place;
  for (const [i, context] of contexts.entries()) {
    await store.commit(unit({ subjects: [created('c', `${i}`, context)] }));
    await store.close();
    store = await place.reopen();
    const loaded = (await loadAll(store)).subjects.map(({ snapshot }) => snapshot.context);
    assert.deepEqual(loaded, contexts.slice(0, i + 1));
  }
});

test('a shape first used by a refused unit is stored with the next one that uses it', async () => {
  await using place = await open();
  const { store } = place;
  await store.commit(unit({ subjects: [created('c', 'held', {})] }));
  const impossible = created('c', 'impossible', { shape: 2n ** 200n });
  for (const subjects of [[created('c', 'held', { shape: 1 })], [impossible]]) {
    await assert.rejects(store.commit(unit({ subjects })));
  }
  await store.commit(unit({ subjects: [created('c', 'next', { shape: 2 })] }));
  await store.close();
  const reopened = await place.reopen();
  const loaded = (await loadAll(reopened)).subjects.map(({ snapshot }) => snapshot.context);
  assert.deepEqual(loaded, [{}, { shape: 2 }]);
});

test('a flush that fails to encode stores nothing, and nothing is stored after it', async () => {
  await using place = await open();
  const { store } = place;
  const impossible = (2n ** 200n) as unknown as string;
  const units: Unit[] = [
    unit({ subjects: [created('c', '1', {})] }),
    unit({
      subjects: [created('c', '2', {})],
      nonces: [{ digest: impossible, forgetAt: 60_000 }],
    }),
  ];
  const outcomes = await Promise.allSettled(units.map((unit) => store.commit(unit)));
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ['rejected', 'rejected'],
  );
  assert.notEqual(store.health(), null);
  await store.close();
  const reopened = await loadAll(await place.reopen());
  assert.deepEqual([reopened.revision, reopened.subjects, reopened.nonces], [0, [], []]);
});

test('a reader of the state finds each answer with the nonces of its request', async () => {
  await using place = await open();
  await place.store.close();
  const store = openLmdbStore(place.folder, ALPHA);
  const nonces = ([digest, minute]: readonly [string, number]) => ({
    digest,
    forgetAt: minute * 60_000,
  });
  const answered = (nonce: SpentNonce) => ({ ...nonce, request: 'r', answer: 'a' });
  for (const [spent, kept] of [
    [[['a', 1]], []],
    // One flush, with nonces of two minutes.
    [
      [
        ['b', 1],
        ['c', 2],
      ],
      [['c', 2]],
    ],
    [[['d', 2]], []],
    [[['e', 2]], [['e', 2]]],
  ] as const) {
    const answers = kept.map(nonces).map(answered);
    await store.commit(unit({ nonces: spent.map(nonces), answers }));
  }
  await store.close();
  const source = await openLmdbSource(place.folder);
  const rows: string[] = [];
  for await (const batch of source.rows('nonces')) {
    for (const { digests, answers } of batch) {
      rows.push([...digests, 'with', ...answers.map(([digest]) => digest)].join(' '));
    }
  }
  await source.close();
  assert.deepEqual(rows, ['a with', 'b with', 'c with c', 'd with', 'e with e']);
});

test('a folder of another schema version is refused', async () => {
  await using place = await open();
  await place.store.close();
  const env = environmentIn(place.folder);
  await env.openDB<unknown, string>({ name: 'meta', useVersions: true }).put('schema', 1);
  await env.close();
  assert.throws(() => openLmdbStore(place.folder), {
    message:
      'The data directory has schema version 1; this program reads version 5: start the program that wrote it',
  });
});

/** As another process opens it. */
function environmentIn(folder: string) {
  return openEnvironment({ path: join(folder, 'state'), maxDbs: 16, overlappingSync: false });
}

interface LmdbPlace extends OpenedStore {
  readonly folder: string;
}

async function open(): Promise<LmdbPlace> {
  const folder = mkdtempSync(join(tmpdir(), 'mesh-store-'));
  /** The store that owns the folder, until it is closed. */
  let holder: Store | null = null;

  function openHere(): Store {
    const store = openLmdbStore(folder);
    holder = {
      ...store,
      async close() {
        holder = null;
        await store.close();
      },
    };
    return holder;
  }

  return {
    folder,
    store: openHere(),
    reopen: async () => openHere(),
    async dieAfter(units) {
      await kill(await startHolder(folder, units));
    },
    auditEntries: async () => [...readAuditEntries(folder)],
    async [Symbol.asyncDispose]() {
      await holder?.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A process that opens the store of the folder, commits the units one by one and then waits. */
async function startHolder(folder: string, units: readonly Unit[]): Promise<ChildProcess> {
  const script = `
    import { setTimeout } from 'node:timers/promises';
    import { deserialize } from 'node:v8';
    import { openLmdbStore } from '${pathToFileURL(modulePath('src/store/lmdb/store.ts'))}';
    const store = openLmdbStore(process.argv[1]);
    for (const unit of deserialize(Buffer.from(process.argv[2], 'base64'))) {
      try {
        await store.commit(unit);
      } catch {
        // Anything left incomplete would reach the disk in this time.
        await setTimeout(100);
      }
    }
    process.stdout.write('done');
    await setTimeout(60_000);
  `;
  const args = [...LOADER, '--input-type=module', '--eval', script];
  const child = spawnNode([...args, folder, serialize(units).toString('base64')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  assert.ok(child.stdout !== null);
  const [said] = await once(child.stdout, 'data');
  assert.equal(String(said), 'done');
  return child;
}

async function kill(child: ChildProcess): Promise<void> {
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}

// Other processes open the database of a folder while its owner commits to it.

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
