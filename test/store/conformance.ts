/** What every implementation of the store port must do. A new store has to pass this suite before it is used. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { serialize } from 'node:v8';
import { canonicalJson } from '../../src/base/json/write.ts';
import { auditLine } from '../../src/store/audit-log.ts';
import {
  type AuditEntry,
  GENESIS_HASH,
  type KeptAnswer,
  type SealedEntry,
  type Store,
  StoreConflict,
  type StoredHistory,
  type StoredLiveness,
  type SubjectRemoval,
  type SubjectWrite,
  type Unit,
} from '../../src/store/store.ts';
import { loadAll } from '../support/stored.ts';

/** A place where a store keeps its state, and the store that currently owns it. */
export interface OpenedStore extends AsyncDisposable {
  readonly store: Store;
  /** Reopens the place after its owner was closed or died. */
  reopen(): Promise<Store>;
  /**
   * Another process opens the place, which has no owner, commits the units one by one, whether or not they are
   * accepted, and dies without closing.
   */
  dieAfter(units: readonly Unit[]): Promise<void>;
  /** The audit entries in the place, in order. */
  auditEntries(): Promise<AuditEntry[]>;
}

export interface StoreUnderTest {
  readonly name: string;
  /** Opens a store on a new, empty place. */
  open(): Promise<OpenedStore>;
}

export function testStore({ name, open }: StoreUnderTest): void {
  suite(`the ${name} store`, { concurrency: false }, () => {
    test('is empty, healthy and closed cleanly when it is new', async () => {
      await using place = await open();
      assert.deepEqual(await contentsOf(place.store), {
        revision: 0,
        subjects: [],
        nonces: [],
        forgottenTimes: [],
        unstoredTimes: [],
        liveness: [],
        auditHead: GENESIS_HASH,
        previousOwner: 'none',
      });
      assert.equal(place.store.health(), null);
    });

    test('stores a unit whole: subjects of any kind, nonces and audit entries', async () => {
      await using place = await open();
      const whole: Unit = {
        subjects: [
          created('invite', 'i-1', { roles: ['role:client'], usedAt: null }),
          created('certificate', 'c-1', { nested: { list: [1, 2.5, -1, 'é✓😀', true] } }),
        ],
        removals: [],
        nonces: [{ digest: 'n-1', forgetAt: 120_000 }],
        audit: [sealed(1)],
      };
      assert.equal(await place.store.commit(whole), 1);
      const { subjects, nonces, auditHead } = await contentsOf(place.store);
      assert.deepEqual(subjects, sorted(whole.subjects.map(withoutReplaces)));
      assert.deepEqual(
        nonces.map(({ digest }) => digest),
        ['n-1'],
      );
      assert.equal(auditHead, 'hash-1');
      assert.deepEqual(await place.auditEntries(), [auditEntry(1)]);
    });

    test('reads the subjects of one kind by themselves, sorted by id', async () => {
      await using place = await open();
      const written = [created('b', '2', {}), created('b', '1', {}), created('c', '0', {})];
      await place.store.commit(unitOf(created('a', '3', {}), ...written));
      const idsOf = async (kind: string) => {
        const found = await place.store.subjectsOf(kind);
        assert.ok(found.every((subject) => subject.kind === kind));
        return found.map(({ id }) => id);
      };
      assert.deepEqual(await idsOf('a'), ['3']);
      assert.deepEqual(await idsOf('b'), ['1', '2']);
      assert.deepEqual(await idsOf('c'), ['0']);
      assert.deepEqual(await idsOf('aa'), []);
      assert.deepEqual(await idsOf('d'), []);
    });

    test('knows its revision, and the hash of any audit entry', async () => {
      await using place = await open();
      const { store } = place;
      assert.deepEqual(await store.position(), {
        epoch: 1,
        revision: 0,
        auditLength: 0,
        auditHead: GENESIS_HASH,
      });
      await Promise.all([
        store.commit(unit({ audit: [sealed(1), sealed(2)] })),
        store.commit(unit({ audit: [sealed(3)] })),
      ]);
      await store.commit(unit({ audit: [sealed(4)] }));
      const position = { epoch: 1, revision: 3, auditLength: 4, auditHead: 'hash-4' };
      assert.deepEqual(await store.position(), position);
      const hashes = await Promise.all([1, 2, 3, 4, 5].map(store.auditHashAt));
      assert.deepEqual(hashes, ['hash-1', 'hash-2', 'hash-3', 'hash-4', null]);
      assert.deepEqual(await (await closeAndReopen(place)).position(), position);
    });

    test('reads its audit log from any entry on, a few at a time', async () => {
      await using place = await open();
      const { store } = place;
      assert.deepEqual(await store.auditAfter(0, 10), []);
      await Promise.all([
        store.commit(unit({ audit: [sealed(1), sealed(2), sealed(3)] })),
        store.commit(unit({ audit: [sealed(4)] })),
      ]);
      for (let entry = 5; entry <= 40; entry += 1) {
        await store.commit(unit({ audit: [sealed(entry)] }));
      }
      const lines = Array.from({ length: 40 }, (_, index) => auditLine(sealed(index + 1)));
      const reread = (await closeAndReopen(place)).auditAfter;
      for (const [after, most] of [
        [0, 40],
        [0, 1],
        [1, 1],
        [2, 30],
        [3, 3],
        [20, 100],
        [39, 2],
        [40, 5],
        [41, 5],
      ] as const) {
        const expected = lines.slice(after, after + most);
        assert.deepEqual(await reread(after, most), expected, `${most} after ${after}`);
      }
    });

    test('keeps the newest row of the history in each slot', async () => {
      await using place = await open();
      const { store } = place;
      const row = (seconds: number, slot: number, ...values: number[]) => ({
        seconds,
        slot,
        values,
      });
      await store.putHistory([row(60, 5, 1, 2 ** 40), row(3600, 5, 3)]);
      await store.putHistory([row(60, 5, 7, 0), row(60, 2879, 9), row(86_400, 0, 11)]);
      await store.putHistory([]);
      assert.equal((await store.position()).revision, 0);
      const rows: StoredHistory[] = [];
      for await (const batch of (await closeAndReopen(place)).history()) rows.push(...batch);
      assert.deepEqual(rows, [
        row(60, 5, 7, 0),
        row(60, 2879, 9),
        row(3600, 5, 3),
        row(86_400, 0, 11),
      ]);
    });

    test('a unit without anything in it still takes a revision', async () => {
      await using place = await open();
      assert.equal(await place.store.commit(unit()), 1);
      assert.equal((await contentsOf(place.store)).revision, 1);
    });

    test('ids may contain any text', async () => {
      await using place = await open();
      const ids = [
        '',
        ' ',
        'a b',
        'a/b//c+d=',
        '__proto__',
        'Zürich ✓ 😀',
        'x'.repeat(512),
        ...['', 'x'.repeat(64), 'x'.repeat(1800)].map((start) => `${start}\u0000y\u0001\u0004`),
        '1',
        '01',
      ];
      await place.store.commit(unitOf(...ids.map((id) => created('policy', id, { id }))));
      const reopened = await closeAndReopen(place);
      const stored = (await contentsOf(reopened)).subjects;
      assert.deepEqual(new Set(stored.map(({ id }) => id)), new Set(ids));
      for (const { id, snapshot } of stored) assert.deepEqual(snapshot.context, { id });
    });

    test('a unit removes subjects, and the liveness stored under their ids', async () => {
      await using place = await open();
      const { store } = place;
      await store.commit(unitOf(...['1', '2', '3'].map((id) => created('c', id, {}))));
      await store.touchMany(['1', '2', '3'].map(contact), []);
      const removed: Unit = {
        ...unitOf(replacing('c', '2', 1)),
        removals: [removal('c', '1', 1), removal('c', '3', 1)],
      };
      assert.equal(await store.commit(removed), 2);
      assert.deepEqual((await contentsOf(store)).subjects, [
        withoutReplaces(replacing('c', '2', 1)),
      ]);
      assert.deepEqual((await contentsOf(store)).liveness, [contact('2')]);
      const reopened = await closeAndReopen(place);
      assert.deepEqual((await contentsOf(reopened)).subjects, [
        withoutReplaces(replacing('c', '2', 1)),
      ]);
      assert.deepEqual((await contentsOf(reopened)).liveness, [contact('2')]);
    });

    test('a removed subject may be created again, even before its removal is on disk', async () => {
      await using place = await open();
      const { store } = place;
      const remove = (version: number) => unit({ removals: [removal('c', '1', version)] });
      await store.commit(unitOf(created('c', '1', { first: true })));
      await store.commit(remove(1));
      await Promise.all([
        store.commit(unitOf(created('c', '1', {}))),
        store.commit(unitOf(replacing('c', '1', 1))),
        store.commit(remove(2)),
        store.commit(unitOf(created('c', '1', { last: true }))),
      ]);
      const reopened = await closeAndReopen(place);
      const expected = [withoutReplaces(created('c', '1', { last: true }))];
      assert.deepEqual((await contentsOf(reopened)).subjects, expected);
      assert.equal((await contentsOf(reopened)).revision, 6);
    });

    test('a version that returns after a removal is not mistaken for the first of its number', async () => {
      await using place = await open();
      const { store } = place;
      const first = store.commit(unitOf(created('c', '1', { round: 1 })));
      // A turn later, so that these belong to the second flush.
      await Promise.resolve().then(() => Promise.resolve());
      const later = [
        store.commit(unit({ removals: [removal('c', '1', 1)] })),
        store.commit(unitOf(created('c', '1', { round: 2 }))),
      ];
      await first;
      await assert.rejects(store.commit(unitOf(created('c', '1', {}))), StoreConflict);
      later.push(store.commit(unitOf(replacing('c', '1', 1))));
      await Promise.all(later);
      assert.deepEqual((await contentsOf(store)).subjects, [
        withoutReplaces(replacing('c', '1', 1)),
      ]);
    });

    for (const [fault, removals] of [
      ['a version that was replaced before', [removal('c', 'held', 1)]],
      ['a version that is yet to come', [removal('c', 'held', 3)]],
      ['a subject that does not exist', [removal('c', 'other', 1)]],
      ['a subject of another kind', [removal('d', 'held', 2)]],
    ] as const) {
      test(`a unit that removes ${fault} rejects with StoreConflict and stores nothing`, async () => {
        await using place = await open();
        const { store } = place;
        await store.commit(unitOf(created('c', 'held', {}), created('c', 'second', {})));
        await store.commit(unitOf(replacing('c', 'held', 1)));
        await store.touchMany([contact('held'), contact('second')], []);
        const before = await contentsOf(store);
        const refused = unit({ removals: [removal('c', 'second', 1), ...removals] });
        await assert.rejects(store.commit(refused), StoreConflict);
        assert.deepEqual(await contentsOf(store), before);
        assert.equal(await store.commit(unitOf(replacing('c', 'second', 1))), 3);
      });
    }

    test('a unit that names a subject twice is refused', async () => {
      await using place = await open();
      await place.store.commit(unitOf(created('c', '1', {})));
      const removals = [removal('c', '1', 1)];
      for (const twice of [
        unit({ subjects: [replacing('c', '1', 1)], removals }),
        unit({ removals: [...removals, ...removals] }),
      ]) {
        await assert.rejects(place.store.commit(twice), {
          message: 'A unit names a subject twice',
        });
      }
      assert.equal((await contentsOf(place.store)).subjects.length, 1);
    });

    for (const [fault, stale] of [
      ['creates a subject that exists', created('invite', 'held', { stale: true })],
      ['replaces a version that was replaced before', replacing('invite', 'held', 1)],
      ['replaces a version that is yet to come', replacing('invite', 'held', 3)],
      ['replaces a subject that does not exist', replacing('invite', 'other', 1)],
    ] as const) {
      test(`a unit that ${fault} rejects with StoreConflict and stores nothing`, async () => {
        await using place = await open();
        await place.store.commit(unitOf(created('invite', 'held', { v: 1 })));
        await place.store.commit(unitOf(replacing('invite', 'held', 1)));
        const before = await contentsOf(place.store);
        const refused = unit({
          subjects: [created('certificate', 'new', {}), stale],
          nonces: [{ digest: 'n-9', forgetAt: 120_000 }],
          audit: [sealed(9)],
        });
        await assert.rejects(place.store.commit(refused), StoreConflict);
        assert.deepEqual(await contentsOf(place.store), before);
        assert.deepEqual(await place.auditEntries(), []);
        assert.equal(place.store.health(), null);
        const next = await place.store.commit(unitOf(created('certificate', 'new', {})));
        assert.equal(next, 3, 'the refused unit took no revision');
      });
    }

    test('of many simultaneous units that create the same subject exactly one is stored', async () => {
      await using place = await open();
      const attempts = Array.from({ length: 50 }, (_, i) =>
        place.store.commit(
          unitOf(created('invite', 'contested', { i }), created('c', `c-${i}`, {})),
        ),
      );
      const outcomes = await Promise.allSettled(attempts);
      const refused = outcomes.filter((outcome) => outcome.status === 'rejected');
      assert.equal(refused.length, 49);
      for (const { reason } of refused) assert.ok(reason instanceof StoreConflict);
      const { subjects, revision } = await contentsOf(place.store);
      assert.equal(revision, 1);
      assert.deepEqual(
        subjects.map(({ id }) => id),
        ['c-0', 'contested'],
      );
    });

    test('a unit may replace what an earlier one, not yet on disk, has written', async () => {
      await using place = await open();
      const revisions = await Promise.all([
        place.store.commit(unitOf(created('crl', 'x', { v: 1 }))),
        place.store.commit(unitOf(replacing('crl', 'x', 1))),
        place.store.commit(unitOf(replacing('crl', 'x', 2))),
      ]);
      assert.deepEqual(revisions, [1, 2, 3]);
      const [stored] = (await contentsOf(place.store)).subjects;
      assert.deepEqual(stored, withoutReplaces(replacing('crl', 'x', 2)));
    });

    test('revisions are gapless and in the order of the commits, whatever is in progress', async () => {
      await using place = await open();
      const revisions: number[] = [];
      const all: Promise<unknown>[] = [];
      for (let turn = 0; turn < 10; turn += 1) {
        const commits = Array.from({ length: 40 }, (_, i) =>
          place.store
            .commit(unitOf(created('c', `${turn}-${i}`, {})))
            .then((revision) => revisions.push(revision)),
        );
        all.push(...commits);
        if (turn % 3 === 0) await Promise.all(commits);
        else await commits[turn];
      }
      await Promise.all(all);
      assert.deepEqual(
        revisions,
        Array.from({ length: 400 }, (_, i) => i + 1),
      );
      const reopened = await closeAndReopen(place);
      assert.equal((await contentsOf(reopened)).revision, 400);
      assert.equal(await reopened.commit(unitOf(created('c', 'later', {}))), 401);
    });

    test('touchMany keeps the last row of each id, and takes no revision', async () => {
      await using place = await open();
      const rows = Array.from({ length: 100 }, (_, i) => ({
        id: `c-${i}`,
        lastSeen: 1000 + i,
        status: 'healthy',
        remoteAddr: '192.0.2.7',
        newestSignedAt: 900.25 + i,
      }));
      await place.store.touchMany(rows, []);
      const changed = {
        ...rows[3],
        id: 'c-3',
        lastSeen: 5000,
        status: 'é',
        remoteAddr: '2001:db8::1',
      };
      const touched = { ...changed, newestSignedAt: 4999.001 };
      await place.store.touchMany([touched], []);
      await place.store.touchMany([], []);
      const expected = rows.map((row) => (row.id === 'c-3' ? touched : row));
      const reopened = await closeAndReopen(place);
      const { liveness, revision } = await contentsOf(reopened);
      assert.deepEqual(liveness, sorted(expected));
      assert.equal(revision, 0);
    });

    test('subjects of a kind, and liveness, are loaded in the order of the bytes of their ids', async () => {
      await using place = await open();
      // U+FFFD sorts before U+1F600 by bytes, and after it by UTF-16 units.
      const ids = ['b', 'a-1', '10', '9', 'a', 'B', 'a1', '\u{1F600}', '\uFFFD', 'é'];
      await place.store.commit(unitOf(...ids.map((id) => created('certificate', id, {}))));
      const contact = { lastSeen: 1, status: '', remoteAddr: '', newestSignedAt: 0 };
      await place.store.touchMany(
        ids.map((id) => ({ id, ...contact })),
        [],
      );
      const { subjects, liveness } = await loadAll(place.store);
      const loaded = [Array.from(subjects, ({ id }) => id), Array.from(liveness, ({ id }) => id)];
      const inOrder = [...ids].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
      assert.deepEqual(loaded, [inOrder, inOrder]);
    });

    test('releasing loaded rows changes nothing, and what is committed then is stored', async () => {
      await using place = await open();
      const { store } = place;
      await store.commit(unitOf(created('c', 'before', { a: 1 })));
      const held = await contentsOf(store);
      const contents = await store.load();
      await contents.dispose();
      assert.deepEqual(await contentsOf(store), held);
      assert.equal(store.health(), null);
      assert.equal(await store.commit(unitOf(created('c', 'after', {}))), 2);
      await assert.rejects(store.commit(unitOf(created('c', 'before', {}))), StoreConflict);
      const reopened = await closeAndReopen(place);
      const ids = (await contentsOf(reopened)).subjects.map(({ id }) => id);
      assert.deepEqual(ids, ['after', 'before']);
    });

    test('nonces are loaded until their time has passed, and then discarded', async () => {
      await using place = await open();
      const minutes = range(1, 20).map((minute) => ({
        digest: `digest-${minute}`,
        forgetAt: minute * 60_000 - 1,
      }));
      await place.store.commit(unit({ nonces: minutes }));
      const now = 10 * 60_000;
      await place.store.forgetNonces(now, []);
      const reopened = await closeAndReopen(place);
      const kept = new Set((await contentsOf(reopened)).nonces.map(({ digest }) => digest));
      for (const { digest, forgetAt } of minutes) {
        if (forgetAt >= now) assert.ok(kept.has(digest), `${digest} is kept`);
      }
      for (const { digest } of minutes.slice(0, 8)) assert.equal(kept.has(digest), false, digest);
      for (const nonce of (await contentsOf(reopened)).nonces) {
        const spent = minutes.find(({ digest }) => digest === nonce.digest);
        assert.ok(nonce.forgetAt >= (spent?.forgetAt ?? Infinity), 'never forgotten too early');
      }
      await reopened.forgetNonces(60 * 60_000, []);
      assert.deepEqual((await contentsOf(reopened)).nonces, []);
    });

    test('kept answers are loaded, and discarded with the nonces of their requests', async () => {
      await using place = await open();
      const spent = [1, 30].map((minute) => ({ digest: `n-${minute}`, forgetAt: minute * 60_000 }));
      const answers = spent.map((nonce) => ({
        ...nonce,
        request: `request of ${nonce.digest}`,
        answer: '{"answer":"é ✓ \\u0000 \\n"}',
      }));
      // Each answer is in one unit with its nonce, and both units are stored together.
      const [first, last] = answers as [KeptAnswer, KeptAnswer];
      const commits = [
        place.store.commit(unit({ nonces: spent.slice(0, 1), answers: [first] })),
        place.store.commit(unit({ nonces: spent.slice(1), answers: [last] })),
      ];
      await Promise.all(commits);
      assert.deepEqual((await loadAll(place.store)).answers, answers);
      await place.store.forgetNonces(10 * 60_000, [[0, 60_000]]);
      const reopened = await closeAndReopen(place);
      assert.deepEqual((await loadAll(reopened)).answers, [last]);
      await reopened.forgetNonces(60 * 60_000, []);
      assert.deepEqual((await loadAll(reopened)).answers, []);
    });

    test('discarding leaves the times that come with it, and they are loaded', async () => {
      await using place = await open();
      assert.deepEqual((await contentsOf(place.store)).forgottenTimes, []);
      const nonces = [1, 30].map((minute) => ({
        digest: `n-${minute}`,
        forgetAt: minute * 60_000,
      }));
      await place.store.commit(unit({ nonces }));
      await place.store.forgetNonces(10 * 60_000, [[0, 60_000]]);
      const reopened = await closeAndReopen(place);
      assert.deepEqual((await contentsOf(reopened)).forgottenTimes, [[0, 60_000]]);
      const times = [
        [0, 60_000],
        [120_000, 180_000],
      ] as const;
      await reopened.forgetNonces(40 * 60_000, times);
      assert.deepEqual((await contentsOf(reopened)).forgottenTimes, times);
    });

    test('the times that come with liveness replace the earlier ones, null keeps them, and they are loaded', async () => {
      await using place = await open();
      assert.deepEqual((await contentsOf(place.store)).unstoredTimes, []);
      await place.store.touchMany([], [[0, 5]]);
      const times = [
        [10, 20.5],
        [30, 40],
      ] as const;
      await place.store.touchMany([], times);
      await place.store.touchMany([contact('a')], null);
      const reopened = await closeAndReopen(place);
      assert.deepEqual((await contentsOf(reopened)).unstoredTimes, times);
    });

    test('nonces of concurrent units are each loaded, and discarded when their own time is past', async () => {
      await using place = await open();
      const nonces = range(1, 60).map((i) => ({
        digest: `digest-${i}`,
        forgetAt: (i % 3) * 10 * 60_000 + 60_000,
      }));
      const commits = nonces.map((nonce) => place.store.commit(unit({ nonces: [nonce] })));
      await Promise.all(commits);
      for (const passed of [0, 1, 2, 3]) {
        await place.store.forgetNonces(passed * 10 * 60_000, []);
        const kept = (await contentsOf(place.store)).nonces.map(({ digest }) => digest);
        const due = nonces.filter(({ forgetAt }) => forgetAt > passed * 10 * 60_000);
        assert.deepEqual(kept, due.map(({ digest }) => digest).sort(), `${passed}`);
      }
    });

    test('repeated calls of forgetNonces discard any number of nonces', async () => {
      await using place = await open();
      const nonces = range(1, 50_000).map((i) => ({ digest: `d-${i}`, forgetAt: i }));
      await place.store.commit(unit({ nonces }));
      for (let call = 0; call < 10; call += 1) await place.store.forgetNonces(10 * 60_000, []);
      assert.deepEqual((await contentsOf(place.store)).nonces, []);
    });

    test('audit entries keep the order of the commits and of each unit', async () => {
      await using place = await open();
      const units = range(1, 100).map((i) => unit({ audit: [sealed(2 * i - 1), sealed(2 * i)] }));
      await Promise.all(units.map(place.store.commit));
      assert.deepEqual(await place.auditEntries(), range(1, 200).map(auditEntry));
      const reopened = await closeAndReopen(place);
      assert.equal((await contentsOf(reopened)).auditHead, 'hash-200');
      await reopened.commit(unit({ audit: [sealed(201)] }));
      assert.deepEqual(await place.auditEntries(), range(1, 201).map(auditEntry));
    });

    test('the last audit entries are loaded, oldest first', async () => {
      await using place = await open();
      assert.deepEqual((await place.store.load()).recentAudit, []);
      const audit = range(1, 1500).map(auditEntry);
      await place.store.commit(unit({ audit: audit.map(seal) }));
      const reopened = await closeAndReopen(place);
      const { recentAudit } = await reopened.load();
      assert.ok(recentAudit.length > 0);
      assert.deepEqual(recentAudit, audit.slice(-recentAudit.length));
    });

    test('everything loaded after closing is byte for byte what was stored', async () => {
      await using place = await open();
      const { store } = place;
      await store.commit({
        subjects: range(1, 50).map((i) =>
          created('certificate', `c-${i}`, {
            at: 1_767_225_600_000.001 + i,
            text: 'é\u0000😀',
            n: -i,
          }),
        ),
        removals: [],
        nonces: [{ digest: 'n', forgetAt: 60_000 }],
        audit: range(1, 10).map(sealed),
      });
      await store.commit(unitOf(replacing('certificate', 'c-7', 1)));
      await store.touchMany(
        [{ id: 'c-1', lastSeen: 1, status: '', remoteAddr: '', newestSignedAt: 0 }],
        [[1, 2]],
      );
      const before = bytesOf({ ...(await contentsOf(store)), previousOwner: 'closed' });
      const entries = bytesOf(await place.auditEntries());
      const reopened = await closeAndReopen(place);
      assert.equal(bytesOf(await contentsOf(reopened)), before);
      assert.equal(bytesOf(await place.auditEntries()), entries);
      const again = await closeAndReopen(place, reopened);
      assert.equal(bytesOf(await contentsOf(again)), before);
    });

    test('a close finishes what is in progress', async () => {
      await using place = await open();
      const commits = range(1, 50).map((i) => place.store.commit(unitOf(created('c', `${i}`, {}))));
      const closing = place.store.close();
      assert.deepEqual(await Promise.all(commits), range(1, 50));
      await closing;
      const reopened = await place.reopen();
      assert.equal((await contentsOf(reopened)).subjects.length, 50);
    });

    for (const [what, impossible] of [
      ['an integer of 200 bits', created('c', 'second', { sequence: 2n ** 200n })],
      ['an id of 5,000 characters', created('c', 'x'.repeat(5000), {})],
    ] as const) {
      test(`a unit with ${what} is stored whole, or rejected and not stored in part`, async () => {
        await using place = await open();
        await place.store.close();
        const whole = unit({
          subjects: [created('c', 'first', {}), impossible],
          nonces: [{ digest: 'n', forgetAt: 120_000 }],
          audit: [sealed(1)],
        });
        await place.dieAfter([whole]);
        const reopened = await place.reopen();
        const { revision, subjects, nonces } = await contentsOf(reopened);
        const audit = await place.auditEntries();
        const stored = [revision, subjects.length, nonces.length, audit.length];
        const expected = revision === 0 ? [0, 0, 0, 0] : [1, 2, 1, 1];
        assert.deepEqual(stored, expected, 'revision, subjects, nonces, audit entries');
      });
    }

    test('a unit that cannot be stored rejects; commit itself never throws', async () => {
      await using place = await open();
      const commit = place.store.commit(unitOf(created('c', 'x'.repeat(5000), {})));
      await commit.catch(() => undefined);
    });

    test('a holder that died without closing has kept everything it acknowledged, and is known to have died', async () => {
      await using place = await open();
      await place.store.close();
      const units = range(1, 20).map((i) =>
        unit({
          subjects: [created('c', `c-${i}`, { i })],
          nonces: [{ digest: `n-${i}`, forgetAt: 600_000 }],
          audit: [sealed(i)],
        }),
      );
      await place.dieAfter(units);
      const reopened = await place.reopen();
      const { previousOwner, revision, subjects, nonces, auditHead } = await contentsOf(reopened);
      assert.equal(previousOwner, 'lost');
      assert.equal(revision, 20);
      assert.deepEqual(
        subjects,
        sorted(units.flatMap((unit) => unit.subjects.map(withoutReplaces))),
      );
      assert.equal(nonces.length, 20);
      assert.equal(auditHead, 'hash-20');
      assert.deepEqual(await place.auditEntries(), range(1, 20).map(auditEntry));
      assert.equal(await reopened.commit(unitOf(created('c', 'later', {}))), 21);
      const cleanly = await closeAndReopen(place, reopened);
      assert.equal((await contentsOf(cleanly)).previousOwner, 'closed');
    });

    test('a store that was abandoned is found lost, with everything it acknowledged', async () => {
      await using place = await open();
      await place.store.commit(unitOf(created('c', '1', {})));
      await place.store.abandon();
      const reopened = await place.reopen();
      assert.equal((await contentsOf(reopened)).previousOwner, 'lost');
      assert.equal((await contentsOf(reopened)).subjects.length, 1);
    });

    test('many batches of rows are loaded whole and in order', async () => {
      await using place = await open();
      const ids = range(1, 2500).map((i) => `c-${String(i).padStart(5, '0')}`);
      await place.store.commit(unitOf(...ids.map((id) => created('certificate', id, { id }))));
      await place.store.touchMany(ids.map(contact), []);
      const { subjects, liveness } = await loadAll(place.store);
      const loaded = [subjects.map(({ id }) => id), liveness.map(({ id }) => id)];
      assert.deepEqual(loaded, [ids, ids]);
    });

    test('a place in use cannot be opened a second time, and its holder is not affected', async () => {
      await using place = await open();
      await assert.rejects(place.reopen(), { message: /in use by another process/ });
      assert.equal(await place.store.commit(unitOf(created('c', '1', {}))), 1);
      assert.equal(place.store.health(), null);
      const reopened = await closeAndReopen(place);
      assert.equal((await contentsOf(reopened)).subjects.length, 1);
      assert.equal((await contentsOf(reopened)).previousOwner, 'closed');
    });
  });
}

/** A unit with only these parts. */
export function unit(parts: Partial<Unit> = {}): Unit {
  return { subjects: [], removals: [], nonces: [], audit: [], ...parts };
}

function unitOf(...subjects: SubjectWrite[]): Unit {
  return unit({ subjects });
}

export function created(kind: string, id: string, context: object): SubjectWrite {
  return { kind, id, version: 1, replaces: 0, snapshot: { value: 'created', context } };
}

function replacing(kind: string, id: string, replaces: number): SubjectWrite {
  const version = replaces + 1;
  return { kind, id, version, replaces, snapshot: { value: 'replaced', context: { version } } };
}

function removal(kind: string, id: string, replaces: number): SubjectRemoval {
  return { kind, id, replaces };
}

function contact(id: string): StoredLiveness {
  return { id, lastSeen: 1, status: 'healthy', remoteAddr: '', newestSignedAt: 0 };
}

function withoutReplaces({ replaces: _, ...stored }: SubjectWrite) {
  return stored;
}

function auditEntry(position: number): AuditEntry {
  return {
    event_id: `event-${position}`,
    event_type: 'certificate_issued',
    details: { position, roles: ['role:é'], nothing: null },
    created_at: '2026-03-01T10:00:00.000001Z',
    prev_hash: position === 1 ? GENESIS_HASH : `hash-${position - 1}`,
    hash: `hash-${position}`,
  };
}

function sealed(position: number): SealedEntry {
  return seal(auditEntry(position));
}

/** The entry in its stored form; stores do not check its hash. */
export function seal(entry: AuditEntry): SealedEntry {
  const { hash: _, ...hashed } = entry;
  return { entry, text: canonicalJson(hashed) };
}

/** Everything that a store loads, as plain values in a fixed order. */
async function contentsOf(store: Store) {
  const { subjects, nonces, liveness, ...others } = await loadAll(store);
  const { revision, forgottenTimes, unstoredTimes, auditHead, previousOwner } = others;
  return {
    ...{ revision, forgottenTimes, unstoredTimes, auditHead, previousOwner },
    subjects: sorted(subjects),
    nonces: nonces.sort((a, b) => (a.digest < b.digest ? -1 : 1)),
    liveness: sorted(liveness),
  };
}

function bytesOf(value: unknown): string {
  return serialize(value).toString('base64');
}

function sorted<T extends { readonly id: string; readonly kind?: string }>(
  rows: readonly T[],
): T[] {
  const key = ({ kind = '', id }: T) => `${kind} ${id}`;
  return [...rows].sort((a, b) => (key(a) < key(b) ? -1 : 1));
}

async function closeAndReopen(place: OpenedStore, store = place.store): Promise<Store> {
  await store.close();
  return place.reopen();
}

function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}
