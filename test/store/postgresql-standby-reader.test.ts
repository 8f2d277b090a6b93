/** Changes as another process reads them while they are written, on a real PostgreSQL. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseStoreAddress } from '../../src/store/postgresql/address.ts';
import { openStandbyReader } from '../../src/store/postgresql/standby-reader.ts';
import { openPostgresqlStore } from '../../src/store/postgresql/store.ts';
import type {
  StandbyReader,
  Store,
  StoreChanges,
  StoredLiveness,
  StoreReading,
  Unit,
} from '../../src/store/store.ts';
import { cuttableProxy } from '../support/instances.ts';
import { storeOptions } from '../support/postgresql-store.ts';
import { sharedCluster } from '../support/shared-cluster.ts';
import { allOf, loadAll } from '../support/stored.ts';
import { seal } from './conformance.ts';

const cluster = await sharedCluster();

const MINUTE = 60_000;

test('reading once and then following, in any steps, gives the same as reading everything', async () => {
  for (let seed = 1; seed <= 6; seed += 1) {
    const url = await cluster.createStore();
    const store = await openPostgresqlStore(storeOptions(url));
    const reader = readerOf(url);
    const copy = copyOfState();
    const random = numbersFrom(seed);
    const write = writerOn(store, random);
    await write(random(30));
    copy.apply(await read(await reader.load()));
    for (let step = 0; step < 12; step += 1) {
      await write(random(20));
      const changes = await reader.changes(random(2) === 0);
      assert.ok(changes !== null, `seed ${seed}, step ${step}`);
      copy.apply(await read(changes));
      assert.equal(reader.seenRevision(), changes.revision);
    }
    const last = await reader.changes(true);
    assert.ok(last !== null);
    copy.apply(await read(last));
    assert.deepEqual(copy.state(), await stateOf(store, copy), `seed ${seed}`);
    await reader.close();
    await store.close();
  }
});

test('only changes are read, and nothing if there are none', async () => {
  const url = await cluster.createStore();
  const store = await openPostgresqlStore(storeOptions(url));
  const reader = readerOf(url);
  await store.commit(unitOf('a', 1));
  await store.touchMany([contact('a', 1), contact('b', 2)], []);
  await read(await reader.load());
  await store.commit(unitOf('b', 1));
  await store.touchMany([contact('b', 3)], [[1, 2]]);
  const changed = await readChanges(reader);
  assert.deepEqual(changed?.ids, ['b']);
  assert.deepEqual(changed?.liveness, [contact('b', 3)]);
  assert.deepEqual(changed?.events, ['event 2']);
  assert.deepEqual(changed?.digests, ['n 2']);
  const nothing = await readChanges(reader);
  assert.deepEqual(
    [nothing?.ids, nothing?.liveness, nothing?.events, nothing?.digests],
    [[], [], [], []],
  );
  await reader.close();
  await store.close();
});

test('of many changes, authority keys come first', async () => {
  const url = await cluster.createStore();
  const store = await openPostgresqlStore(storeOptions(url));
  const reader = readerOf(url);
  await store.commit(unitOf('a', 1));
  await read(await reader.load());
  const { subjects, ...unit } = unitOf('b', 1);
  const many = Array.from({ length: 2500 }, (_, i) =>
    subjects.map((subject) => ({ ...subject, id: `${i}` })),
  ).flat();
  await store.commit({ ...unit, subjects: many });
  const { subjects: keys, ...later } = unitOf('key', 1);
  await store.commit({
    ...later,
    subjects: keys.map((key) => ({ ...key, kind: 'authority-key' })),
  });
  const changes = await reader.changes(false);
  assert.ok(changes !== null);
  const [first, ...others] = await allOf(changes.subjects);
  assert.equal(first?.kind, 'authority-key');
  assert.equal(others.length, 2500);
  await changes.end();
  await reader.close();
  await store.close();
});

test('another process that continues from the same state is followed', async () => {
  const url = await cluster.createStore();
  const first = await openPostgresqlStore(storeOptions(url));
  const reader = readerOf(url);
  await first.commit(unitOf('a', 1));
  await read(await reader.load());
  await first.commit(unitOf('b', 1));
  await first.close();
  const second = await openPostgresqlStore(storeOptions(url));
  await second.commit(unitOf('c', 1));
  assert.deepEqual((await readChanges(reader))?.ids, ['b', 'c']);
  await reader.close();
  await second.close();
});

for (const [what, loss] of [
  ['no longer holds the changes', 'delete from mesh_na.changes'],
  [
    'has the revision from another process',
    `update mesh_na.changes set holder = gen_random_uuid()`,
  ],
  ['lacks a flush', 'delete from mesh_na.changes where revision = 2'],
] as const) {
  test(`a database that ${what} is not followed, but read again`, async () => {
    const url = await cluster.createStore();
    const store = await openPostgresqlStore(storeOptions(url));
    const reader = readerOf(url);
    await store.commit(unitOf('a', 1));
    await read(await reader.load());
    for (const id of ['b', 'c']) await store.commit(unitOf(id, 1));
    await cluster.query(new URL(url).pathname.slice(1), loss);
    assert.equal(await reader.changes(true), null);
    assert.equal(await reader.changes(true), null, 'until it is read again');
    await read(await reader.load());
    await store.commit(unitOf('d', 1));
    assert.deepEqual((await readChanges(reader))?.ids, ['d']);
    await reader.close();
    await store.close();
  });
}

test('what a database has lost stays known, although another process has continued without it', async () => {
  const url = await cluster.createStore();
  const name = new URL(url).pathname.slice(1);
  const reader = readerOf(url);
  await committed(url, 'a');
  await cluster.query('postgres', `create database ${name}_before template ${name}`);
  await committed(url, 'b');
  await read(await reader.load());
  const seen = reader.newest();
  assert.equal(seen?.revision, 2);
  await reader.leave();
  await cluster.query('postgres', `drop database ${name}`);
  await cluster.query('postgres', `alter database ${name}_before rename to ${name}`);
  await committed(url, 'c', 'd');
  await read(await reader.load());
  assert.deepEqual(reader.newest(), seen);
  await committed(url, 'e');
  await readChanges(reader);
  assert.deepEqual(reader.newest(), seen);
  await reader.close();
});

test('a lost connection is opened again, and all contacts are read again', async () => {
  const url = await cluster.createStore();
  const store = await openPostgresqlStore(storeOptions(url));
  const reader = readerOf(url);
  await store.commit(unitOf('a', 1));
  await store.touchMany([contact('a', 1)], []);
  await read(await reader.load());
  await store.commit(unitOf('b', 1));
  await cluster.query(new URL(url).pathname.slice(1), END_READER);
  await assert.rejects(reader.changes(true));
  const changed = await readChanges(reader);
  assert.deepEqual(changed?.ids, ['b']);
  assert.deepEqual(changed?.liveness, [contact('a', 1)]);
  await reader.close();
  await store.close();
});

test('a silent connection is abandoned without waiting for it, and what was read stays', async () => {
  const url = await cluster.createStore();
  await using proxy = await cuttableProxy(`127.0.0.1:${cluster.port}`);
  const store = await openPostgresqlStore(storeOptions(url));
  const reader = readerOf(url.replace(/@[^/]+/, `@${proxy.address}`));
  await store.commit(unitOf('a', 1));
  await read(await reader.load());
  await store.commit(unitOf('b', 1));
  proxy.cut('both');
  const unanswered = assert.rejects(reader.changes(false));
  await reader.leave();
  await unanswered;
  assert.deepEqual((await readChanges(reader))?.ids, ['b']);
  await reader.close();
  await store.close();
});

/** Has the same effect as a broken connection. */
const END_READER = `select pg_terminate_backend(pid) from pg_stat_activity
  where application_name like 'mesh-na standby%' and datname = current_database()`;

function readerOf(url: string): StandbyReader {
  return openStandbyReader({
    address: parseStoreAddress(url, {}),
    network: null,
    leaseMs: 5000,
  });
}

function contact(id: string, lastSeen: number): StoredLiveness {
  return { id, lastSeen, status: 'healthy', remoteAddr: '', newestSignedAt: lastSeen };
}

let events = 0;

function sealedEvent(number: number) {
  return seal({
    event_id: `${number}`,
    event_type: `event ${number}`,
    details: {},
    created_at: '2026-03-01T10:00:00.000001Z',
    prev_hash: '',
    hash: `hash-${number}-`.padEnd(64, '0'),
  });
}

/** Commits these subjects as another process. */
async function committed(url: string, ...ids: readonly string[]): Promise<void> {
  const store = await openPostgresqlStore(storeOptions(url));
  for (const id of ids) await store.commit(unitOf(id, 1));
  await store.close();
}

function unitOf(id: string, version: number): Unit {
  if (id === 'a') events = 0;
  events += 1;
  return {
    subjects: [
      {
        kind: 'certificate',
        id,
        version,
        replaces: version - 1,
        snapshot: { value: 'v', context: { version } },
      },
    ],
    removals: [],
    nonces: [{ digest: `n ${events}`, forgetAt: MINUTE }],
    answers: [{ digest: `n ${events}`, forgetAt: MINUTE, request: 'r', answer: `"${events}"` }],
    audit: [sealedEvent(events)],
  };
}

async function read(reading: StoreReading) {
  const { revision, auditLength, auditHead, recentAudit, forgottenTimes, unstoredTimes } = reading;
  const subjects = await allOf(reading.subjects);
  const all = {
    subjects,
    removals: 'removals' in reading ? (reading as StoreChanges).removals() : [],
    liveness: await allOf(reading.liveness),
    nonces: await allOf(reading.nonces),
    answers: await allOf(reading.answers),
    facts: { revision, auditLength, auditHead, forgottenTimes, unstoredTimes },
    recentAudit,
  };
  await reading.end();
  return all;
}

async function readChanges(reader: StandbyReader) {
  const changes = await reader.changes(true);
  if (changes === null) return null;
  const { subjects, liveness, nonces, recentAudit } = await read(changes);
  return {
    ids: subjects.map(({ id }) => id).sort(),
    liveness,
    events: recentAudit.map(({ event_type }) => event_type),
    digests: nonces.map(({ digest }) => digest),
  };
}

type Read = Awaited<ReturnType<typeof read>>;

/** The knowledge of a reader that applies everything. */
function copyOfState() {
  const subjects = new Map<string, unknown>();
  const liveness = new Map<string, StoredLiveness>();
  const nonces = new Map<string, number>();
  const answers = new Map<string, string>();
  let facts: Read['facts'] | null = null;
  let events: string[] = [];
  return {
    nonces,
    answers,
    apply(given: Read) {
      for (const subject of given.subjects) subjects.set(`${subject.kind} ${subject.id}`, subject);
      for (const { kind, id } of given.removals) {
        subjects.delete(`${kind} ${id}`);
        liveness.delete(id);
      }
      for (const seen of given.liveness) liveness.set(seen.id, seen);
      for (const { digest, forgetAt } of given.nonces) nonces.set(digest, forgetAt);
      for (const { digest, answer } of given.answers) answers.set(digest, answer);
      facts = given.facts;
      events = [...events, ...given.recentAudit.map(({ event_id }) => event_id)];
    },
    state: () => ({
      facts,
      events,
      subjects: [...subjects.entries()].sort(byKey),
      liveness: [...liveness.entries()].sort(byKey),
    }),
  };
}

function byKey([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1;
}

/** The result of a complete read; the copy may still have nonces and answers that were forgotten in the meantime. */
async function stateOf(store: Store, copy: ReturnType<typeof copyOfState>) {
  const whole = await loadAll(store);
  for (const { digest, forgetAt } of whole.nonces) assert.equal(copy.nonces.get(digest), forgetAt);
  for (const { digest, answer } of whole.answers) assert.equal(copy.answers.get(digest), answer);
  await whole.dispose();
  const { revision, auditLength, auditHead, forgottenTimes, unstoredTimes } = whole;
  return {
    facts: { revision, auditLength, auditHead, forgottenTimes, unstoredTimes },
    events: whole.recentAudit.map(({ event_id }) => event_id),
    subjects: whole.subjects
      .map((one) => [`${one.kind} ${one.id}`, one] as [string, unknown])
      .sort(byKey),
    liveness: whole.liveness.map((one) => [one.id, one] as [string, StoredLiveness]).sort(byKey),
  };
}

/** Writes units of all kinds, some of them together. */
function writerOn(store: Store, random: (below: number) => number) {
  const versions = new Map<string, number>();
  const generations = new Map<string, number>();
  let number = 0;
  let seen = 0;

  function unit(): Unit {
    number += 1;
    const kind = random(2) === 0 ? 'certificate' : 'agent-registration';
    const place = `${kind[0]}-${random(25)}`;
    // Certificates do not come back after their removal.
    const id = `${place}-${generations.get(place) ?? 0}`;
    const address = `${kind} ${id}`;
    const replaces = versions.get(address) ?? 0;
    const isRemoval = replaces > 0 && random(4) === 0;
    if (isRemoval) {
      versions.delete(address);
      generations.set(place, number);
    } else versions.set(address, replaces + 1);
    const snapshot = { value: `v${random(3)}`, context: { [`m${random(6)}`]: number } };
    const digest = `n-${number}`;
    const forgetAt = random(60) * MINUTE;
    return {
      subjects: isRemoval ? [] : [{ kind, id, version: replaces + 1, replaces, snapshot }],
      removals: isRemoval ? [{ kind, id, replaces }] : [],
      nonces: [{ digest, forgetAt }],
      answers: random(2) === 0 ? [] : [{ digest, forgetAt, request: 'r', answer: `${number}` }],
      audit: random(3) === 0 ? [] : [sealedEvent(number)],
    };
  }

  async function touch(): Promise<void> {
    const ids = [...versions.keys()].filter((address) => address.startsWith('certificate '));
    const rows = ids
      .filter(() => random(3) === 0)
      .map((address) => {
        seen += 1;
        return contact(address.slice('certificate '.length), seen);
      });
    await store.touchMany(rows, [[number, number + 1]]);
  }

  return async (units: number): Promise<void> => {
    for (let left = units; left > 0; ) {
      const together = Math.min(left, 1 + random(4));
      left -= together;
      await Promise.all(Array.from({ length: together }, () => store.commit(unit())));
      if (random(4) === 0) await touch();
      if (random(8) === 0) await store.forgetNonces(random(60) * MINUTE, [[0, number]]);
    }
  };
}

function numbersFrom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}
