/** A copy that follows a state holds what the state holds, whatever was written, changed, removed or forgotten between. */
import assert from 'node:assert/strict';
import { closeSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { systemRuntime } from '../../src/runtime.ts';
import { openLmdbReceiver } from '../../src/store/lmdb/receiver.ts';
import { openLmdbStore } from '../../src/store/lmdb/store.ts';
import { openLmdbTrail } from '../../src/store/lmdb/trail.ts';
import { moverOptions } from '../../src/store/open.ts';
import { parseStoreAddress } from '../../src/store/postgresql/address.ts';
import { openPostgresqlReceiver } from '../../src/store/postgresql/receiver.ts';
import { openPostgresqlSource } from '../../src/store/postgresql/source.ts';
import { openPostgresqlStore } from '../../src/store/postgresql/store.ts';
import { openPostgresqlTrail } from '../../src/store/postgresql/trail.ts';
import type { SealedEntry, Store, SubjectWrite, Unit } from '../../src/store/store.ts';
import { summarize } from '../../src/store/stream/write.ts';
import { decodeTotals } from '../../src/store/totals.ts';
import type { StateReceiver, StateTrail } from '../../src/store/trail/ports.ts';
import { startCluster } from '../support/postgresql.ts';
import { migratedDatabase, storeOptions } from '../support/postgresql-store.ts';
import { seal } from './conformance.ts';

const cluster = await startCluster();
after(() => cluster[Symbol.asyncDispose]());
const folders: string[] = [];
after(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

const NETWORK = { network_name: 'alpha', root_public_key: 'root', authority_public_key: 'key' };
const ROUNDS = 25;
const IDS = Array.from({ length: 80 }, (_, index) => `id-${index} é\u{10ffff}`);

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'mesh-trail-'));
  folders.push(folder);
  return folder;
}

test('from LMDB to PostgreSQL', async () => {
  const folder = newFolder();
  await follows(
    openLmdbStore(folder, NETWORK),
    async () => openLmdbTrail(folder),
    await receiverInDatabase(),
  );
});

test('from PostgreSQL to LMDB', async () => {
  const url = await migratedDatabase(cluster);
  const dataDir = newFolder();
  await follows(
    await openPostgresqlStore({ ...storeOptions(url), network: NETWORK, dataDir }),
    () => openPostgresqlTrail(parseStoreAddress(url, {})),
    openLmdbReceiver(newFolder()),
  );
});

test('a transaction that LMDB has written but not yet given to readers is not read by half', async () => {
  const folder = newFolder();
  const store = openLmdbStore(folder, NETWORK);
  await store.commit(unitWith(entryOf(1)));
  const trail = openLmdbTrail(folder);
  await trail.next();
  await store.commit(unitWith(entryOf(2)));
  const end = putBack(folder);

  const coming = trail.next();
  setTimeout(end, 50);
  const { meta, changes, source } = await coming;
  const rows: unknown[] = [];
  for await (const batch of changes('audit')) rows.push(...batch.map(({ key }) => key));
  assert.deepEqual(rows, [2]);
  assert.equal(decodeTotals(meta.get('totals')).auditEntries, 2);
  assert.equal(source.facts.auditLength, 2);
  await trail.close();
  await store.close();
});

test('a database whose audit log is longer than what a start shows of it is read like any other', async () => {
  const url = await migratedDatabase(cluster);
  const dataDir = newFolder();
  const store = await openPostgresqlStore({ ...storeOptions(url), network: NETWORK, dataDir });
  const audit = Array.from({ length: 1200 }, (_, index) => entryOf(index + 1));
  await store.commit({ subjects: [], removals: [], nonces: [], audit });
  const source = await openPostgresqlSource(parseStoreAddress(url, {}));
  assert.equal((await summarize(source)).audit.rows, 1200);
  await source.close();
  await store.close();
});

/** As while the last transaction gets its last page to the disk: LMDB tells readers of the one before. */
function putBack(folder: string): () => void {
  const file = openSync(join(folder, 'state', 'lock.mdb'), 'r+');
  const last = Buffer.alloc(8);
  readSync(file, last, 0, last.length, LAST_TRANSACTION);
  const former = Buffer.alloc(8);
  former.writeBigUInt64LE(last.readBigUInt64LE() - 1n);
  writeSync(file, former, 0, former.length, LAST_TRANSACTION);
  return () => {
    writeSync(file, last, 0, last.length, LAST_TRANSACTION);
    closeSync(file);
  };
}

/** Where its number is in the lock file. */
const LAST_TRANSACTION = 8;

function unitWith(entry: SealedEntry): Unit {
  return { subjects: [], removals: [], nonces: [], audit: [entry] };
}

async function receiverInDatabase(): Promise<StateReceiver> {
  const address = parseStoreAddress(await migratedDatabase(cluster), {});
  return openPostgresqlReceiver({ ...moverOptions(systemRuntime), address, dataDir: newFolder() });
}

async function follows(
  store: Store,
  openTrail: () => Promise<StateTrail>,
  receiver: StateReceiver,
): Promise<void> {
  const change = createChanges(store);
  await change();
  const trail = await openTrail();
  const first = await trail.next();
  await receiver.begin({ from: 'there', network: first.source.facts.network });
  await receiver.take(first);
  for (let round = 0; round < ROUNDS; round += 1) {
    if (round % 5 !== 4) await change();
    const reading = await trail.next();
    const rows = await receiver.take(reading);
    const arrived = await receiver.openSource();
    assert.deepEqual(await summarize(arrived), await summarize(reading.source), `round ${round}`);
    assert.deepEqual(
      { ...arrived.facts, isClosed: null },
      { ...reading.source.facts, isClosed: null },
    );
    await arrived.close();
    if (round % 5 === 4) assert.equal(rows, 0, 'what has not changed is not written');
  }
  await trail.close();
  await receiver.abandon();
  await store.close();
}

function entryOf(number: number): SealedEntry {
  return seal({
    event_id: `event-${number}`,
    event_type: 'invite_created',
    details: { number },
    created_at: '2026-01-01T00:00:00.000Z',
    prev_hash: `hash-${number - 1}`,
    hash: `hash-${number}`,
  });
}

function random(below: number): number {
  return Math.floor(Math.random() * below);
}

/** Writes, changes and removes subjects, contacts, nonces and answers, and forgets some. */
function createChanges(store: Store): () => Promise<void> {
  const versions = new Map<string, number>();
  let version = 0;
  let entry = 0;
  let now = Date.now();

  function write(id: string): SubjectWrite {
    version += 1;
    const replaces = versions.get(id) ?? 0;
    versions.set(id, version);
    const text = 'x'.repeat(random(10) === 0 ? 20_000 : random(300));
    return {
      kind: 'k',
      id,
      version,
      replaces,
      snapshot: { value: 'v', context: { text, version } },
    };
  }

  function removal(id: string) {
    const replaces = versions.get(id);
    if (replaces === undefined) return [];
    versions.delete(id);
    return [{ kind: 'k', id, replaces }];
  }

  function nextEntry() {
    entry += 1;
    return entryOf(entry);
  }

  function commitOne(id: string) {
    const isRemoval = random(3) === 0;
    const forgetAt = now + random(600_000);
    const digest = `digest ${version} ${id}`;
    const answers = [{ digest, forgetAt, request: 'request', answer: 'answer' }];
    return store.commit({
      subjects: isRemoval ? [] : [write(id)],
      removals: isRemoval ? removal(id) : [],
      nonces: [{ digest, forgetAt }],
      answers: random(2) === 0 ? answers : [],
      audit: random(2) === 0 ? [nextEntry()] : [],
    });
  }

  return async () => {
    for (let flush = 0; flush < 3; flush += 1) {
      const changed = new Set(Array.from({ length: 1 + random(12) }, () => random(IDS.length)));
      await Promise.all([...changed].map((index) => commitOne(IDS[index] as string)));
    }
    const contacts = [...versions.keys()].filter(() => random(3) === 0);
    await store.touchMany(
      contacts.map((id) => ({
        id,
        lastSeen: now,
        status: 'healthy',
        remoteAddr: '192.0.2.1',
        newestSignedAt: now,
      })),
      [[now, now + 1]],
    );
    now += 60_000;
    if (random(3) === 0) await store.forgetNonces(now, [[0, now]]);
  };
}
