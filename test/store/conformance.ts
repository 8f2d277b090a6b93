/**
 * What every implementation of the store port must do (architecture, 4). A new store passes this suite
 * before it holds anybody's state.
 */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { serialize } from 'node:v8';
import { canonicalJson } from '../../src/json/write.ts';
import {
  type AuditEntry,
  GENESIS_HASH,
  type SealedEntry,
  type Store,
  StoreConflict,
  type StoredLiveness,
  type SubjectRemoval,
  type SubjectWrite,
  type Unit,
} from '../../src/store/store.ts';

/** One place that a store keeps its state in, and the store that holds it now. */
export interface OpenedStore extends AsyncDisposable {
  readonly store: Store;
  /** Opens the place again, after its holder was closed or has died. */
  reopen(): Promise<Store>;
  /**
   * Another process opens the free place, commits the units one by one, whether they are taken or not,
   * and dies without closing.
   */
  dieAfter(units: readonly Unit[]): Promise<void>;
  /** The audit entries of the place, in order. */
  auditEntries(): AuditEntry[];
}

export interface StoreUnderTest {
  readonly name: string;
  /** A store on a new, empty place. */
  open(): Promise<OpenedStore>;
  /** Revisions whose changes a follower can still ask for. */
  readonly keptChanges: number;
}

export function testStore({ name, open, keptChanges }: StoreUnderTest): void {
  suite(`the ${name} store`, { concurrency: false }, () => {
    test('is empty, healthy and closed cleanly when it is new', async () => {
      await using place = await open();
      assert.deepEqual(contentsOf(place.store), {
        revision: 0,
        subjects: [],
        removals: [],
        nonces: [],
        liveness: [],
        auditHead: GENESIS_HASH,
        closedCleanly: true,
      });
      assert.equal(place.store.health(), null);
      assert.deepEqual(place.store.changes(0), { revision: 0, subjects: [] });
    });

    test('stores a unit whole: subjects of any kind, nonces and audit entries', async () => {
      await using place = await open();
      const unit: Unit = {
        subjects: [
          created('invite', 'i-1', { roles: ['role:client'], usedAt: null }),
          created('certificate', 'c-1', { nested: { list: [1, 2.5, -1, 'é✓😀', true] } }),
        ],
        removals: [],
        nonces: [{ digest: 'n-1', forgetAt: 120_000 }],
        audit: [sealed(1)],
      };
      assert.equal(await place.store.commit(unit), 1);
      const { subjects, nonces, auditHead } = contentsOf(place.store);
      assert.deepEqual(subjects, sorted(unit.subjects.map(withoutReplaces)));
      assert.deepEqual(
        nonces.map(({ digest }) => digest),
        ['n-1'],
      );
      assert.equal(auditHead, 'hash-1');
      assert.deepEqual(place.auditEntries(), [auditEntry(1)]);
    });

    test('a unit without anything in it still takes a revision', async () => {
      await using place = await open();
      assert.equal(
        await place.store.commit({ subjects: [], removals: [], nonces: [], audit: [] }),
        1,
      );
      assert.deepEqual(place.store.changes(0), { revision: 1, subjects: [] });
    });

    test('ids may hold any text', async () => {
      await using place = await open();
      const ids = [
        '',
        ' ',
        'a b',
        'a/b//c+d=',
        '__proto__',
        'Zürich ✓ 😀',
        'x'.repeat(512),
        '1',
        '01',
      ];
      await place.store.commit(unitOf(...ids.map((id) => created('policy', id, { id }))));
      const reopened = await closeAndReopen(place);
      const stored = contentsOf(reopened).subjects;
      assert.deepEqual(new Set(stored.map(({ id }) => id)), new Set(ids));
      for (const { id, snapshot } of stored) assert.deepEqual(snapshot.context, { id });
    });

    test('a unit removes subjects, and the liveness stored under their ids', async () => {
      await using place = await open();
      const { store } = place;
      await store.commit(unitOf(...['1', '2', '3'].map((id) => created('c', id, {}))));
      await store.touchMany(['1', '2', '3'].map(contact));
      const removed: Unit = {
        ...unitOf(replacing('c', '2', 1)),
        removals: [removal('c', '1', 1), removal('c', '3', 1)],
      };
      assert.equal(await store.commit(removed), 2);
      assert.deepEqual(contentsOf(store).subjects, [withoutReplaces(replacing('c', '2', 1))]);
      assert.deepEqual(contentsOf(store).liveness, [contact('2')]);
      const reopened = await closeAndReopen(place);
      assert.deepEqual(contentsOf(reopened).subjects, [withoutReplaces(replacing('c', '2', 1))]);
      assert.deepEqual(contentsOf(reopened).liveness, [contact('2')]);
    });

    test('a removed subject may be created again, also while its removal is not on disk yet', async () => {
      await using place = await open();
      const { store } = place;
      const remove = (version: number) => ({ ...unitOf(), removals: [removal('c', '1', version)] });
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
      assert.deepEqual(contentsOf(reopened).subjects, expected);
      assert.equal(contentsOf(reopened).revision, 6);
    });

    test('a version that comes again after a removal is not taken for the first of its number', async () => {
      await using place = await open();
      const { store } = place;
      const first = store.commit(unitOf(created('c', '1', { round: 1 })));
      // One turn later: these belong to the flush after the first.
      await Promise.resolve().then(() => Promise.resolve());
      const later = [
        store.commit({ ...unitOf(), removals: [removal('c', '1', 1)] }),
        store.commit(unitOf(created('c', '1', { round: 2 }))),
      ];
      await first;
      await assert.rejects(store.commit(unitOf(created('c', '1', {}))), StoreConflict);
      later.push(store.commit(unitOf(replacing('c', '1', 1))));
      await Promise.all(later);
      assert.deepEqual(contentsOf(store).subjects, [withoutReplaces(replacing('c', '1', 1))]);
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
        await store.commit(unitOf(created('c', 'held', {}), created('c', 'beside', {})));
        await store.commit(unitOf(replacing('c', 'held', 1)));
        await store.touchMany([contact('held'), contact('beside')]);
        const before = contentsOf(store);
        const unit = { ...unitOf(), removals: [removal('c', 'beside', 1), ...removals] };
        await assert.rejects(store.commit(unit), StoreConflict);
        assert.deepEqual(contentsOf(store), before);
        assert.equal(await store.commit(unitOf(replacing('c', 'beside', 1))), 3);
      });
    }

    test('a unit that names a subject twice is refused', async () => {
      await using place = await open();
      await place.store.commit(unitOf(created('c', '1', {})));
      const removals = [removal('c', '1', 1)];
      for (const unit of [
        { ...unitOf(replacing('c', '1', 1)), removals },
        { ...unitOf(), removals: [...removals, ...removals] },
      ]) {
        await assert.rejects(place.store.commit(unit), { message: 'A unit names a subject twice' });
      }
      assert.equal(contentsOf(place.store).subjects.length, 1);
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
        const before = contentsOf(place.store);
        const unit: Unit = {
          subjects: [created('certificate', 'new', {}), stale],
          removals: [],
          nonces: [{ digest: 'n-9', forgetAt: 120_000 }],
          audit: [sealed(9)],
        };
        await assert.rejects(place.store.commit(unit), StoreConflict);
        assert.deepEqual(contentsOf(place.store), before);
        assert.deepEqual(place.auditEntries(), []);
        assert.equal(place.store.health(), null);
        const next = await place.store.commit(unitOf(created('certificate', 'new', {})));
        assert.equal(next, 3, 'the refused unit took no revision');
      });
    }

    test('of many units that create the same subject at once exactly one is stored', async () => {
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
      const { subjects, revision } = contentsOf(place.store);
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
      const [stored] = contentsOf(place.store).subjects;
      assert.deepEqual(stored, withoutReplaces(replacing('crl', 'x', 2)));
    });

    test('revisions are gapless and in the order of the commits, whatever is in flight', async () => {
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
      assert.equal(contentsOf(reopened).revision, 400);
      assert.equal(await reopened.commit(unitOf(created('c', 'later', {}))), 401);
    });

    test('changes names each subject touched since a revision once, and none before', async () => {
      await using place = await open();
      const { store } = place;
      await store.commit(unitOf(created('a', '1', {}), created('b', '1', {})));
      await store.commit(unitOf(replacing('a', '1', 1)));
      await store.commit(unitOf(created('a', '2', {})));
      await store.commit(unitOf(replacing('a', '1', 2)));
      assert.deepEqual(changedIds(store, 0), ['a 1', 'a 2', 'b 1']);
      assert.deepEqual(changedIds(store, 1), ['a 1', 'a 2']);
      assert.deepEqual(changedIds(store, 3), ['a 1']);
      assert.deepEqual(changedIds(store, 4), []);
      const reopened = await closeAndReopen(place);
      assert.deepEqual(changedIds(reopened, 1), ['a 1', 'a 2']);
    });

    test('changes never names a revision whose subjects it leaves out', async () => {
      await using place = await open();
      const { store } = place;
      let landed = 0;
      const commits = Array.from({ length: 300 }, (_, i) =>
        i % 30 === 0 ? pause().then(() => commitOne(i)) : commitOne(i),
      );
      function commitOne(i: number): Promise<void> {
        return store.commit(unitOf(created('c', `c-${i}`, {}))).then(() => {
          landed += 1;
        });
      }
      const seen = new Set<string>();
      let since = 0;
      while (landed < commits.length) {
        const changes = store.changes(since);
        assert.notEqual(changes, 'too_old');
        if (changes === 'too_old') return;
        assert.equal(changes.subjects.length, changes.revision - since, `since ${since}`);
        for (const { id } of changes.subjects) seen.add(id);
        since = changes.revision;
        await pause();
      }
      await Promise.all(commits);
      for (const id of changedIds(store, since)) seen.add(id.slice(2));
      assert.equal(seen.size, 300, 'a follower misses nothing');
    });

    test(`changes go back ${keptChanges} revisions; older ones are too old, never incomplete`, async () => {
      await using place = await open();
      const { store } = place;
      const last = keptChanges + 5;
      const width = 500;
      for (let from = 1; from <= last; from += width) {
        const upTo = Math.min(from + width - 1, last);
        const commits = range(from, upTo).map((r) =>
          store.commit(unitOf(created('c', `${r}`, {}))),
        );
        await Promise.all(commits);
      }
      for (const tooOld of [0, 1, 4]) assert.equal(store.changes(tooOld), 'too_old', `${tooOld}`);
      for (const since of [5, 6, last - 1, last]) {
        const changes = store.changes(since);
        assert.notEqual(changes, 'too_old', `since ${since}`);
        if (changes === 'too_old') return;
        assert.equal(changes.revision, last);
        const ids = changes.subjects.map(({ id }) => Number(id)).sort((a, b) => a - b);
        assert.deepEqual(ids, range(since + 1, last));
      }
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
      await place.store.touchMany(rows);
      const changed = {
        ...rows[3],
        id: 'c-3',
        lastSeen: 5000,
        status: 'é',
        remoteAddr: '2001:db8::1',
      };
      const touched = { ...changed, newestSignedAt: 4999.001 };
      await place.store.touchMany([touched]);
      await place.store.touchMany([]);
      const expected = rows.map((row) => (row.id === 'c-3' ? touched : row));
      const reopened = await closeAndReopen(place);
      const { liveness, revision } = contentsOf(reopened);
      assert.deepEqual(liveness, sorted(expected));
      assert.equal(revision, 0);
    });

    test('subjects of a kind, and liveness, are loaded in the order of their ids', async () => {
      await using place = await open();
      const ids = ['b', 'a-1', '10', '9', 'a', 'B', 'a1'];
      await place.store.commit(unitOf(...ids.map((id) => created('certificate', id, {}))));
      const contact = { lastSeen: 1, status: '', remoteAddr: '', newestSignedAt: 0 };
      await place.store.touchMany(ids.map((id) => ({ id, ...contact })));
      const { subjects, liveness } = place.store.load();
      const loaded = [Array.from(subjects, ({ id }) => id), Array.from(liveness, ({ id }) => id)];
      assert.deepEqual(loaded, [[...ids].sort(), [...ids].sort()]);
    });

    test('ending the load changes nothing, and what is committed then is stored', async () => {
      await using place = await open();
      const { store } = place;
      await store.commit(unitOf(created('c', 'before', { a: 1 })));
      const held = contentsOf(store);
      await store.endLoading();
      assert.deepEqual(contentsOf(store), held);
      assert.equal(store.health(), null);
      assert.equal(await store.commit(unitOf(created('c', 'after', {}))), 2);
      await assert.rejects(store.commit(unitOf(created('c', 'before', {}))), StoreConflict);
      const reopened = await closeAndReopen(place);
      const ids = contentsOf(reopened).subjects.map(({ id }) => id);
      assert.deepEqual(ids, ['after', 'before']);
    });

    test('nonces are loaded until their time has passed, and then forgotten', async () => {
      await using place = await open();
      const minutes = range(1, 20).map((minute) => ({
        digest: `digest-${minute}`,
        forgetAt: minute * 60_000 - 1,
      }));
      await place.store.commit({ subjects: [], removals: [], nonces: minutes, audit: [] });
      const now = 10 * 60_000;
      await place.store.forgetNonces(now);
      const reopened = await closeAndReopen(place);
      const kept = new Set(contentsOf(reopened).nonces.map(({ digest }) => digest));
      for (const { digest, forgetAt } of minutes) {
        if (forgetAt >= now) assert.ok(kept.has(digest), `${digest} is kept`);
      }
      for (const { digest } of minutes.slice(0, 8)) assert.equal(kept.has(digest), false, digest);
      for (const nonce of contentsOf(reopened).nonces) {
        const spent = minutes.find(({ digest }) => digest === nonce.digest);
        assert.ok(nonce.forgetAt >= (spent?.forgetAt ?? Infinity), 'never forgotten too early');
      }
      await reopened.forgetNonces(60 * 60_000);
      assert.deepEqual(contentsOf(reopened).nonces, []);
    });

    test('nonces of units committed at once are each loaded, and forgotten when their own time is past', async () => {
      await using place = await open();
      const nonces = range(1, 60).map((i) => ({
        digest: `digest-${i}`,
        forgetAt: (i % 3) * 10 * 60_000 + 60_000,
      }));
      const commits = nonces.map((nonce) =>
        place.store.commit({ subjects: [], removals: [], nonces: [nonce], audit: [] }),
      );
      await Promise.all(commits);
      for (const passed of [0, 1, 2, 3]) {
        await place.store.forgetNonces(passed * 10 * 60_000);
        const kept = contentsOf(place.store).nonces.map(({ digest }) => digest);
        const due = nonces.filter(({ forgetAt }) => forgetAt > passed * 10 * 60_000);
        assert.deepEqual(kept, due.map(({ digest }) => digest).sort(), `${passed}`);
      }
    });

    test('however many nonces there are, calling forgetNonces again gets rid of them', async () => {
      await using place = await open();
      const nonces = range(1, 50_000).map((i) => ({ digest: `d-${i}`, forgetAt: i }));
      await place.store.commit({ subjects: [], removals: [], nonces, audit: [] });
      for (let call = 0; call < 10; call += 1) await place.store.forgetNonces(10 * 60_000);
      assert.deepEqual(contentsOf(place.store).nonces, []);
    });

    test('audit entries keep the order of the commits and of each unit', async () => {
      await using place = await open();
      const units = range(1, 100).map((i) => ({
        subjects: [],
        removals: [],
        nonces: [],
        audit: [sealed(2 * i - 1), sealed(2 * i)],
      }));
      await Promise.all(units.map((unit) => place.store.commit(unit)));
      assert.deepEqual(place.auditEntries(), range(1, 200).map(auditEntry));
      const reopened = await closeAndReopen(place);
      assert.equal(contentsOf(reopened).auditHead, 'hash-200');
      await reopened.commit({ subjects: [], removals: [], nonces: [], audit: [sealed(201)] });
      assert.deepEqual(place.auditEntries(), range(1, 201).map(auditEntry));
    });

    test('the last audit entries are loaded, oldest first', async () => {
      await using place = await open();
      assert.deepEqual(place.store.load().recentAudit, []);
      const audit = range(1, 1500).map(auditEntry);
      await place.store.commit({ subjects: [], removals: [], nonces: [], audit: audit.map(seal) });
      const reopened = await closeAndReopen(place);
      const { recentAudit } = reopened.load();
      assert.ok(recentAudit.length > 0);
      assert.deepEqual(recentAudit, audit.slice(-recentAudit.length));
    });

    test('what is loaded after closing is byte for byte what was stored', async () => {
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
      await store.touchMany([
        { id: 'c-1', lastSeen: 1, status: '', remoteAddr: '', newestSignedAt: 0 },
      ]);
      const before = bytesOf(contentsOf(store));
      const entries = bytesOf(place.auditEntries());
      const reopened = await closeAndReopen(place);
      assert.equal(bytesOf(contentsOf(reopened)), before);
      assert.equal(bytesOf(place.auditEntries()), entries);
      const again = await closeAndReopen(place, reopened);
      assert.equal(bytesOf(contentsOf(again)), before);
    });

    test('a close finishes what is in flight', async () => {
      await using place = await open();
      const commits = range(1, 50).map((i) => place.store.commit(unitOf(created('c', `${i}`, {}))));
      const closing = place.store.close();
      assert.deepEqual(await Promise.all(commits), range(1, 50));
      await closing;
      const reopened = await place.reopen();
      assert.equal(contentsOf(reopened).subjects.length, 50);
    });

    for (const [what, impossible] of [
      ['an integer of 200 bits', created('c', 'second', { sequence: 2n ** 200n })],
      ['an id of 5,000 characters', created('c', 'x'.repeat(5000), {})],
    ] as const) {
      test(`a unit with ${what} is stored whole, or rejected and not stored in part`, async () => {
        await using place = await open();
        await place.store.close();
        const unit: Unit = {
          subjects: [created('c', 'first', {}), impossible],
          removals: [],
          nonces: [{ digest: 'n', forgetAt: 120_000 }],
          audit: [sealed(1)],
        };
        await place.dieAfter([unit]);
        const reopened = await place.reopen();
        const { revision, subjects, nonces } = contentsOf(reopened);
        const audit = place.auditEntries();
        const stored = [revision, subjects.length, nonces.length, audit.length];
        const wanted = revision === 0 ? [0, 0, 0, 0] : [1, 2, 1, 1];
        assert.deepEqual(stored, wanted, 'revision, subjects, removals: [], nonces, audit entries');
      });
    }

    test('a unit that cannot be stored rejects; commit itself never throws', async () => {
      await using place = await open();
      const commit = place.store.commit(unitOf(created('c', 'x'.repeat(5000), {})));
      await commit.catch(() => undefined);
    });

    test('a holder that died without closing has kept all it acknowledged, and it shows', async () => {
      await using place = await open();
      await place.store.close();
      const units = range(1, 20).map((i) => ({
        subjects: [created('c', `c-${i}`, { i })],
        removals: [],
        nonces: [{ digest: `n-${i}`, forgetAt: 600_000 }],
        audit: [sealed(i)],
      }));
      await place.dieAfter(units);
      const reopened = await place.reopen();
      const { closedCleanly, revision, subjects, nonces, auditHead } = contentsOf(reopened);
      assert.equal(closedCleanly, false);
      assert.equal(revision, 20);
      assert.deepEqual(
        subjects,
        sorted(units.flatMap((unit) => unit.subjects.map(withoutReplaces))),
      );
      assert.equal(nonces.length, 20);
      assert.equal(auditHead, 'hash-20');
      assert.deepEqual(place.auditEntries(), range(1, 20).map(auditEntry));
      assert.equal(await reopened.commit(unitOf(created('c', 'later', {}))), 21);
      const cleanly = await closeAndReopen(place, reopened);
      assert.equal(contentsOf(cleanly).closedCleanly, true);
    });

    test('a place that is held cannot be opened a second time, and its holder is not disturbed', async () => {
      await using place = await open();
      await assert.rejects(place.reopen(), { message: /in use by another process$/ });
      assert.equal(await place.store.commit(unitOf(created('c', '1', {}))), 1);
      assert.equal(place.store.health(), null);
      const reopened = await closeAndReopen(place);
      assert.equal(contentsOf(reopened).subjects.length, 1);
      assert.equal(contentsOf(reopened).closedCleanly, true);
    });
  });
}

function unitOf(...subjects: SubjectWrite[]): Unit {
  return { subjects, removals: [], nonces: [], audit: [] };
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

/** The entry as it is stored; stores take its hash as it is. */
export function seal(entry: AuditEntry): SealedEntry {
  const { hash: _, ...hashed } = entry;
  return { entry, text: canonicalJson(hashed) };
}

/** All that a store loads, as plain values in a fixed order. */
function contentsOf(store: Store) {
  const { revision, subjects, nonces, liveness, auditHead, closedCleanly } = store.load();
  return {
    revision,
    subjects: sorted(Array.from(subjects, (subject) => structuredClone(subject))),
    removals: [],
    nonces: [...nonces].map(spread).sort((a, b) => (a.digest < b.digest ? -1 : 1)),
    liveness: sorted(Array.from(liveness, spread)),
    auditHead,
    closedCleanly,
  };
}

function bytesOf(value: unknown): string {
  return serialize(value).toString('base64');
}

function spread<T extends object>(value: T): T {
  return { ...value };
}

function sorted<T extends { readonly id: string; readonly kind?: string }>(
  rows: readonly T[],
): T[] {
  const key = ({ kind = '', id }: T) => `${kind} ${id}`;
  return [...rows].sort((a, b) => (key(a) < key(b) ? -1 : 1));
}

function changedIds(store: Store, since: number): string[] {
  const changes = store.changes(since);
  assert.notEqual(changes, 'too_old');
  if (changes === 'too_old') return [];
  return changes.subjects.map(({ kind, id }) => `${kind} ${id}`).sort();
}

async function closeAndReopen(place: OpenedStore, store = place.store): Promise<Store> {
  await store.close();
  return place.reopen();
}

function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}

function pause(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
