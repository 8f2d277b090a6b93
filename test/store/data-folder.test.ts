/** A data directory with missing or wrong content is refused, and the message names the problem. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  copyFileSync,
  cpSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { before, suite, test } from 'node:test';
import { canonicalJson } from '../../src/base/json/write.ts';
import { checkForReading } from '../../src/store/lmdb/folder-state.ts';
import { metaNumbers, readMeta } from '../../src/store/lmdb/pages.ts';
import { readAuditEntries } from '../../src/store/lmdb/source.ts';
import { openLmdbStore } from '../../src/store/lmdb/store.ts';
import { checkStructure } from '../../src/store/lmdb/structure.ts';
import { GENESIS_HASH, type SealedEntry } from '../../src/store/store.ts';
import { startTestAuthority } from '../support/authority.ts';
import { testClock } from '../support/clock.ts';
import { runCommand } from '../support/commands.ts';
import { makeNetworkFolder, ownFolder, ownNetwork } from '../support/folders.ts';
import { PROJECT_PATH } from '../support/project.ts';
import { get, joinedNode } from '../support/requests.ts';
import { unit } from './conformance.ts';

const DATABASE = 'state/data.mdb';
const SENTENCE = /^The [^\n]{10,300}[^.\s]$/;

/** Two networks that were used and stopped; no test changes their folders. */
const clock = testClock();
const [alpha, beta] = [ownNetwork('alpha'), ownNetwork('beta')];

before(async () => {
  for (const dataDir of [alpha, beta]) {
    const na = await startTestAuthority({ dataDir, clock });
    for (let i = 0; i < 20; i += 1) await joinedNode(na);
    await na.stop();
  }
});

suite('the start is refused, in one sentence,', { concurrency: false }, () => {
  for (const [what, prepare, message] of [
    ['when the database is cut off in the middle', cutTo(0.5), /damaged: of state\/data\.mdb, it /],
    ['when the database is cut off behind its first page', cutTo(0.1), /damaged: of state\/data/],
    [
      'when the database is empty',
      (folder: string) => truncateSync(join(folder, DATABASE), 0),
      /was in use by the network "alpha", but state\/data\.mdb is empty; restore it from a backup$/,
    ],
    [
      'when the database is missing',
      (folder: string) => rmSync(join(folder, DATABASE)),
      /was in use by the network "alpha", but state\/data\.mdb is missing; restore it from a backup$/,
    ],
    [
      'when the whole state is missing',
      (folder: string) => rmSync(join(folder, 'state'), { recursive: true }),
      /was in use by the network "alpha", but state\/data\.mdb is missing; restore it from a backup$/,
    ],
    [
      'when the database is missing and the note of its use cannot be read',
      (folder: string) => {
        rmSync(join(folder, DATABASE));
        writeFileSync(join(folder, 'mesh-na.state.json'), '{');
      },
      /was in use, but state\/data\.mdb is missing; restore it from a backup$/,
    ],
    [
      'when genesis and keys of another network lie over the state',
      (folder: string) => {
        for (const name of ['genesis.json', 'mesh-na.json', 'keys']) {
          cpSync(join(beta, name), join(folder, name), { recursive: true, force: true });
        }
      },
      /belongs to the network "alpha", not to "beta"$/,
    ],
    [
      'when the state of another network was put in',
      (folder: string) => copyFileSync(join(beta, DATABASE), join(folder, DATABASE)),
      /belongs to the network "beta", not to "alpha"$/,
    ],
    [
      'when the lock file of the database cannot be written',
      (folder: string) => folderInPlaceOf(join(folder, 'state/lock.mdb')),
      /cannot be used: .*lock\.mdb cannot be written \(EISDIR\)$/,
    ],
    [
      'when the lock file of the folder cannot be written',
      (folder: string) => folderInPlaceOf(join(folder, 'mesh-na.lock')),
      /cannot be locked: .*mesh-na\.lock cannot be written \(EISDIR\)$/,
    ],
  ] as const) {
    test(what, async () => {
      const copy = copyOf(alpha);
      prepare(copy);
      await assert.rejects(startTestAuthority({ dataDir: copy, clock }), (cause) => {
        assert.ok(cause instanceof Error);
        assert.match(cause.message, SENTENCE);
        assert.match(cause.message, message);
        return true;
      });
    });
  }

  test('when the state belongs to a network of the same name with other keys', async () => {
    const copy = copyOf(alpha);
    const { folder, made } = makeNetworkFolder('alpha');
    for (const name of ['genesis.json', 'mesh-na.json', 'keys']) {
      cpSync(join(folder, name), join(copy, name), { recursive: true, force: true });
    }
    rmSync(folder, { recursive: true });
    await assert.rejects(startTestAuthority({ dataDir: copy, clock }), (cause) => {
      assert.ok(cause instanceof Error);
      assert.match(cause.message, /belongs to another network "alpha", whose root key is /);
      assert.equal(cause.message.includes(made.root_public_key), false);
      return true;
    });
  });

  for (const [what, prepare, message] of [
    [
      'when a folder that was never used cannot hold a state',
      (folder: string) => writeFileSync(join(folder, 'state'), ''),
      /state in the data directory cannot be used: \S+ cannot be written/,
    ],
    [
      'when what a folder that was never used holds is not a database',
      (folder: string) => {
        mkdirSync(join(folder, 'state'));
        writeFileSync(join(folder, DATABASE), 'no database '.repeat(10_000));
      },
      /data\.mdb, it does not begin as a database does; restore it/,
    ],
  ] as const) {
    test(what, async () => {
      const dataDir = ownNetwork();
      prepare(dataDir);
      await assert.rejects(startTestAuthority({ dataDir, clock }), message);
    });
  }
});

suite('the audit log is read from a database that LMDB can open safely:', () => {
  test('a page that does not fit is named, and the program ends with exit code 3', async () => {
    const copy = copyOf(alpha);
    const page = damagePage(join(copy, DATABASE));
    const named = `of state/data.mdb, page ${page} does not fit the others; restore it from a backup`;
    const ended = await runCommand(['audit', 'verify', '--data-dir', copy]);
    assert.deepEqual([ended.code, ended.stdout], [3, '']);
    assert.equal(ended.stderr, `mesh-na: The stored state is damaged: ${named}\n`);
  });

  test('an empty one has no state', async () => {
    const copy = copyOf(alpha);
    truncateSync(join(copy, DATABASE), 0);
    assert.throws(() => checkForReading(copy), /holds no state of an authority$/);
  });

  test('one that this user may not read is not called empty', async () => {
    const copy = copyOf(alpha);
    const isRoot = process.getuid?.() === 0;
    chmodSync(copy, isRoot ? 0o700 : 0o000);
    if (isRoot) process.seteuid?.(65_534);
    try {
      assert.throws(
        () => checkForReading(copy),
        /data\.mdb cannot be read \(EACCES\): run this as the user of the authority$/,
      );
    } finally {
      if (isRoot) process.seteuid?.(0);
      chmodSync(copy, 0o700);
    }
  });

  test('a database that changes while it is checked is not called damaged', async () => {
    const copy = copyOf(alpha);
    const writer = spawn(process.execPath, ['-e', WRITER, join(copy, 'state')], {
      cwd: PROJECT_PATH,
    });
    const ended = once(writer, 'exit');
    try {
      await once(writer.stdout, 'data');
      for (let i = 0; i < 100; i += 1) checkForReading(copy);
    } finally {
      writer.kill('SIGKILL');
      await ended;
    }
    assert.equal(checkForReading(copy), true);
  });
});

suite('a write of which only the last step is missing', () => {
  test('is finished by the next start; a reader is informed', async () => {
    const copy = copyOf(alpha);
    const path = join(copy, DATABASE);
    const entries = [...readAuditEntries(copy)];
    const { size } = statSync(path);
    withMetas(path, ([older, current]) => takeBack(current, older));
    assert.throws(() => checkForReading(copy), /was interrupted: start the authority/);
    const na = await startTestAuthority({ dataDir: copy, clock });
    for (let i = 0; i < 20; i += 1) await joinedNode(na);
    await na.stop();
    assert.equal(checkForReading(copy), true);
    assert.ok(statSync(path).size < 4 * size, 'it grows by what is written');
    assert.deepEqual([...readAuditEntries(copy)].slice(0, entries.length), entries);
  });

  test('is not finished when its pages are damaged', async () => {
    const copy = copyOf(alpha);
    const path = join(copy, DATABASE);
    damageEachPageWith(path, '"event_type"');
    withMetas(path, ([older, current]) => takeBack(current, older));
    await assert.rejects(startTestAuthority({ dataDir: copy, clock }), /does not fit/);
  });

  test('is not assumed for a root with a damaged number', async () => {
    const copy = copyOf(alpha);
    withMetas(join(copy, DATABASE), ([older, current], bytes) => {
      const next = readMeta(current).transaction + 1n;
      bytes.writeBigUInt64LE(next, Number(readMeta(older).main.root) * PAGE_SIZE + 8);
    });
    await assert.rejects(startTestAuthority({ dataDir: copy, clock }), /does not fit/);
  });
});

const PAGE_SIZE = 4096;

/** Changes the file through its meta pages, and through the rest of its bytes. */
function withMetas(
  path: string,
  change: (metas: [older: Buffer, current: Buffer], bytes: Buffer) => void,
): void {
  const bytes = readFileSync(path);
  const metas: [Buffer, Buffer] = [bytes.subarray(0, PAGE_SIZE), bytes.subarray(PAGE_SIZE)];
  metas.sort((a, b) => Number(readMeta(a).transaction - readMeta(b).transaction));
  change(metas, bytes);
  writeFileSync(path, bytes);
}

/** Does what LMDB does if it cannot write a meta page: it restores the earlier numbers, but keeps the new trees. */
function takeBack(current: Buffer, older: Buffer): void {
  const { bytes, at } = metaNumbers({
    lastPage: readMeta(older).lastPage,
    transaction: readMeta(current).transaction - 2n,
  });
  bytes.copy(current, at);
}

test('a start checks the end of the audit log, however long it is; readers have all of it checked', async () => {
  const folder = ownFolder();
  const store = openLmdbStore(folder);
  const numbers = Array.from({ length: 2500 }, (_, index) => index + 1);
  for (const number of numbers) {
    await store.commit(unit({ audit: [entryNumber(number)] }));
  }
  await store.close();
  damageEachPageWith(join(folder, DATABASE), '"event-3"');
  const again = openLmdbStore(folder);
  const { recentAudit, dispose } = await again.load();
  assert.deepEqual(
    recentAudit.map(({ event_id }) => event_id),
    numbers.slice(-1000).map((number) => `event-${number}`),
  );
  await dispose();
  await again.commit(unit({ audit: [entryNumber(2501)] }));
  await again.close();
  assert.throws(() => checkStructure(join(folder, DATABASE), 'whole'), /does not fit/);
  damageEachPageWith(join(folder, DATABASE), '"event-2200"');
  assert.throws(() => openLmdbStore(folder), /does not fit/);
});

function entryNumber(number: number): SealedEntry {
  const entry = {
    event_id: `event-${number}`,
    event_type: 'certificate_issued',
    details: { text: 'x'.repeat(200) },
    created_at: '2026-03-01T10:00:00.000001Z',
    prev_hash: GENESIS_HASH,
  };
  return { entry: { ...entry, hash: GENESIS_HASH }, text: canonicalJson(entry) };
}

function damageEachPageWith(path: string, text: string): void {
  const bytes = readFileSync(path);
  for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at + 1)) {
    const page = at - (at % 4096);
    bytes.writeUInt8(bytes.readUInt8(page) ^ 1, page);
  }
  writeFileSync(path, bytes);
}

/** Consecutive transactions that each free some pages and reuse others, so that the file stays small. */
const WRITER = `
const { open } = require('lmdb');
const env = open({ path: process.argv[1], maxDbs: 16, mapSize: 64 * 1024 ** 3, overlappingSync: false, noSync: true });
const table = env.openDB({ name: 'audit' });
let next = 0;
function write() {
  for (let i = 0; i < 10; i += 1, next += 1) {
    table.putSync(next % 40, Buffer.alloc(2000 + (next % 7) * 1000));
  }
  setImmediate(write);
}
write();
console.log('writing');
`;

/** Makes the root page of the table tree claim another page number; returns the right number. */
function damagePage(path: string): number {
  const bytes = readFileSync(path);
  const [even, odd] = [0, 1].map((number) => readMeta(bytes.subarray(number * 4096)));
  assert.ok(even !== undefined && odd !== undefined);
  const { main, pageSize } = even.transaction > odd.transaction ? even : odd;
  assert.equal(pageSize, 4096);
  const page = Number(main.root);
  bytes.writeUInt8(bytes.readUInt8(page * pageSize) ^ 1, page * pageSize);
  writeFileSync(path, bytes);
  return page;
}

test('a state from before its use was recorded gets a record at the next start', async () => {
  const copy = copyOf(alpha);
  rmSync(join(copy, 'mesh-na.state.json'));
  await (await startTestAuthority({ dataDir: copy, clock })).stop();
  rmSync(join(copy, DATABASE));
  await assert.rejects(startTestAuthority({ dataDir: copy, clock }), /was in use by the/);
});

test('a start that is refused leaves a lost holder as lost', async () => {
  const copy = copyOf(alpha);
  const port = { dataDir: copy, clock, flags: { host: '192.0.2.1' } };
  await assert.rejects(startTestAuthority(port), /Cannot listen on/);
  await using na = await startTestAuthority({ dataDir: copy, clock });
  assert.equal((await get(na, '/readyz')).status, 200);
});

function cutTo(share: number): (folder: string) => void {
  return (folder) => {
    const path = join(folder, DATABASE);
    truncateSync(path, Math.floor(statSync(path).size * share));
  };
}

function folderInPlaceOf(path: string): void {
  rmSync(path);
  mkdirSync(path);
}

function copyOf(dataDir: string): string {
  const folder = ownFolder();
  cpSync(dataDir, folder, { recursive: true });
  return folder;
}
