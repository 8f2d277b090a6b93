/**
 * A copy of a state has the same contents as the state, regardless of what was written, changed, removed or forgotten
 * since the last copy.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { systemRuntime } from '../../src/base/runtime.ts';
import { ARRIVING } from '../../src/store/lmdb/arrival.ts';
import { openLmdbReceiver } from '../../src/store/lmdb/receiver.ts';
import { openLmdbReader, openLmdbSource } from '../../src/store/lmdb/source.ts';
import { openLmdbStore } from '../../src/store/lmdb/store.ts';
import { lmdbTables, openEnvironment, openTables } from '../../src/store/lmdb/tables.ts';
import { moverOptions } from '../../src/store/open.ts';
import { parseStoreAddress } from '../../src/store/postgresql/address.ts';
import { connectToPrimary, disconnect } from '../../src/store/postgresql/connect.ts';
import { openPostgresqlReceiver } from '../../src/store/postgresql/receiver.ts';
import { openPostgresqlReader, openPostgresqlSource } from '../../src/store/postgresql/source.ts';
import { openPostgresqlStore } from '../../src/store/postgresql/store.ts';
import { postgresqlTables } from '../../src/store/postgresql/tables.ts';
import type { RowKey } from '../../src/store/rows.ts';
import type { SealedEntry, Store, SubjectWrite } from '../../src/store/store.ts';
import type { StateReader, StateReceiver, StateSource } from '../../src/store/stream/ports.ts';
import { summarize } from '../../src/store/stream/write.ts';
import { compareKeys } from '../../src/store/tables.ts';
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
const NUMBERS = [0, 1, 255, 256, 2 ** 32, 2 ** 53 - 1];
const IDS = Array.from({ length: 80 }, (_, index) => `id-${index} é\u{10ffff}`);

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'mesh-difference-'));
  folders.push(folder);
  return folder;
}

test('from LMDB to PostgreSQL', async () => {
  const [folder, url] = [newFolder(), await migratedDatabase(cluster)];
  const address = parseStoreAddress(url, {});
  await copies({
    store: openLmdbStore(folder, NETWORK),
    openReader: async () => openLmdbReader(folder),
    receiver: await openPostgresqlReceiver({
      ...moverOptions(systemRuntime),
      address,
      dataDir: newFolder(),
    }),
    openArrived: () => openPostgresqlSource(address),
  });
});

test('from PostgreSQL to LMDB', async () => {
  const [folder, url] = [newFolder(), await migratedDatabase(cluster)];
  const options = { ...storeOptions(url), network: NETWORK, dataDir: newFolder() };
  await copies({
    store: await openPostgresqlStore(options),
    openReader: () => openPostgresqlReader(parseStoreAddress(url, {})),
    receiver: openLmdbReceiver(folder),
    openArrived: () => openLmdbSource(join(folder, ARRIVING)),
  });
});

test('a state that lacks a row is not copied', async () => {
  const folder = newFolder();
  const store = openLmdbStore(folder, NETWORK);
  await createChanges(store)();
  await store.close();
  const env = openEnvironment(folder, false);
  const { subjects } = openTables(env);
  const [first] = subjects.getKeys({ limit: 1 });
  assert.ok(first !== undefined);
  subjects.removeSync(first);
  await env.close();

  const reader = openLmdbReader(folder);
  const receiver = openLmdbReceiver(newFolder());
  await receiver.begin({ from: 'there', network: NETWORK });
  await assert.rejects(reader.next().then(receiver.take), /table subjects holds \d+ entries where/);
  await reader.close();
  await receiver.abandon();
});

test('keys are in the same order in every database', async () => {
  const texts = ['\u0001', '\u001f', 'a', 'a\u0001', 'ab', 'b', 'é', '\uffff', '\u{10000}'];
  const keys = {
    subjects: texts.flatMap((kind) => texts.map((id) => [kind, id] as const)),
    liveness: texts,
    nonces: NUMBERS.flatMap((bucket) => NUMBERS.map((revision) => [bucket, revision] as const)),
    audit: NUMBERS,
  };
  const env = openEnvironment(newFolder(), false);
  const address = parseStoreAddress(await migratedDatabase(cluster), {});
  const { client } = await connectToPrimary(address);
  for (const place of [lmdbTables(openTables(env)), postgresqlTables(client)]) {
    for (const [name, some] of Object.entries(keys)) {
      const table = name as keyof typeof keys;
      const rows = some.map((key) => ({ key, version: 1, row: Buffer.of(1) }));
      await place.write([{ table, put: rows.toReversed() }]);
      const found: RowKey[] = [];
      for await (const batch of place.scan(table, ({ key }) => key)) found.push(...batch);
      assert.deepEqual(found, [...(some as readonly RowKey[])].toSorted(compareKeys));
    }
  }
  await env.close();
  await disconnect(client);
});

test('a database with a longer audit log than a start shows is read like any other', async () => {
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

interface Copied {
  readonly store: Store;
  openReader(): Promise<StateReader>;
  readonly receiver: StateReceiver;
  openArrived(): Promise<StateSource>;
}

async function copies({ store, openReader, receiver, openArrived }: Copied): Promise<void> {
  const change = createChanges(store);
  await change();
  const reader = await openReader();
  const first = await reader.next();
  await receiver.begin({ from: 'there', network: first.facts.network });
  await receiver.take(first);
  for (let round = 0; round < ROUNDS; round += 1) {
    if (round % 5 !== 4) await change();
    const reading = await reader.next();
    const rows = await receiver.take(reading);
    const arrived = await openArrived();
    assert.deepEqual(await summarize(arrived), await summarize(reading), `round ${round}`);
    assert.deepEqual({ ...arrived.facts, isClosed: null }, { ...reading.facts, isClosed: null });
    await arrived.close();
    if (round % 5 === 4) assert.equal(rows, 0, 'what has not changed is not written');
  }
  await reader.close();
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
