import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createCertificateIndex } from '../src/authority/certificates/certificate-index.ts';
import { createContactWriter } from '../src/authority/certificates/contact-writer.ts';
import { createLiveness } from '../src/authority/certificates/last-contact.ts';
import type { ContactView } from '../src/authority/certificates/roster.ts';
import { createNonceWindows } from '../src/authority/replay/nonce-window.ts';
import { createCertificateNumbers } from '../src/authority/subjects/numbering.ts';
import { createSubjects } from '../src/authority/subjects/subjects.ts';
import type { TimeRange } from '../src/store/store.ts';

const WINDOW = 1000;

test('restored contacts are active in the order of their contacts, and found by their ids', () => {
  const liveness = createLiveness(WINDOW, createCertificateNumbers());
  const heardOf = ['a', 'b', 'c', 'd'].map((id, index) =>
    liveness.restore(id, {
      lastSeen: [3, 1, 2, 4][index] ?? 0,
      status: 'ok',
      remoteAddr: '',
      newestSignedAt: index + 10,
    }),
  );
  liveness.activate(heardOf.slice(0, 3));
  const order = () =>
    liveness
      .walk(500)
      .take(10)
      .map(({ id }) => id);
  assert.deepEqual(order(), ['a', 'c', 'b']);
  assert.equal(liveness.newestSignedAt('d'), 13);
  assert.equal(liveness.newestSignedAt('nobody'), 0);

  liveness.touch('b', { at: 5, status: 'ok', remoteAddr: '', chain: 0 });
  liveness.touch('new', { at: 6, status: 'ok', remoteAddr: '', chain: 0 });
  liveness.retire('c');
  assert.deepEqual(order(), ['new', 'b', 'a']);
  assert.equal(liveness.activeCount(3 + WINDOW), 2);
  assert.deepEqual(
    liveness.takeDirty().map(({ id, newestSignedAt }) => [id, newestSignedAt]),
    [
      ['b', 11],
      ['new', 0],
    ],
  );
});

test('contacts that another process stored are in order, each once, however often they move', () => {
  const liveness = createLiveness(WINDOW, createCertificateNumbers());
  for (const [id, lastSeen] of [
    ['a', 1],
    ['b', 3],
    ['c', 2],
    ['a', 4],
    ['a', 4],
    ['c', 5],
  ] as const) {
    liveness.follow(id, { lastSeen, status: 'ok', remoteAddr: '', newestSignedAt: 0 }, 'active');
    liveness.putInOrder();
  }
  const ids = liveness
    .walk(5)
    .take(10)
    .map(({ id }) => id);
  assert.deepEqual(ids, ['c', 'a', 'b']);
  assert.equal(liveness.activeCount(5), 3);
});

test('a large batch is stored in parts, and its range with the last of them', async () => {
  const liveness = createLiveness(WINDOW, createCertificateNumbers());
  function touch(id: number): void {
    liveness.touch(`c-${id}`, { at: 1, status: 'ok', remoteAddr: '', chain: 0 });
  }
  const calls: [rows: number, times: readonly TimeRange[] | null][] = [];
  const ids = new Set<string>();
  const writer = createContactWriter({
    liveness,
    store: {
      async touchMany(rows, times) {
        calls.push([rows.length, times]);
        for (const { id } of rows) ids.add(id);
        // Nodes that call in the meantime join the batch only as far as there is room.
        for (let id = 0; id < 400; id += 1) touch(calls.length * 1000 + id);
      },
    },
    replay: {
      isBeyondStoredRange: () => false,
      rangesToStore: (now) => [[now, now + calls.length]],
      rangesStored: () => calls.push([-1, null]),
    },
    now: () => 7,
    failed: (cause) => assert.ifError(cause),
  });
  for (let id = 0; id < 1200; id += 1) touch(id);
  await writer.flush();
  assert.deepEqual(calls, [
    [500, null],
    [500, null],
    [500, [[7, 9]]],
    [-1, null],
  ]);
  assert.ok(Array.from({ length: 1200 }, (_, id) => `c-${id}`).every((id) => ids.has(id)));

  calls.length = 0;
  for (let id = 0; id < 20_000; id += 1) touch(id);
  await writer.flush();
  assert.equal(calls.length, 17, '16 parts, however many rows there are');
});

const id = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h');

const happening = fc.oneof(
  fc.record({ what: fc.constant('touch' as const), id }),
  fc.record({ what: fc.constant('retire' as const), id }),
  fc.record({ what: fc.constant('wait' as const), for: fc.integer({ min: 1, max: WINDOW }) }),
  fc.record({ what: fc.constant('take' as const), limit: fc.integer({ min: 1, max: 3 }) }),
);

test('a walk visits what was active when it began, as it was then, through any changes', () => {
  fc.assert(
    fc.property(fc.array(id), fc.array(happening, { maxLength: 40 }), (before, meanwhile) => {
      const liveness = createLiveness(WINDOW, createCertificateNumbers());
      let now = 0;
      const touch = (id: string) => {
        now += 1;
        liveness.touch(id, { at: now, status: `at ${now}`, remoteAddr: '', chain: 0 });
      };
      for (const id of before) touch(id);
      const expected = liveness.walk(now).take(100).map(sightOf);

      const walk = liveness.walk(now);
      const visited: (readonly unknown[])[] = [];
      for (const event of meanwhile) {
        if (event.what === 'touch') touch(event.id);
        else if (event.what === 'retire') liveness.retire(event.id);
        else if (event.what === 'take') visited.push(...walk.take(event.limit).map(sightOf));
        else now += event.for;
        liveness.activeCount(now);
      }
      for (let rest = walk.take(3); rest.length > 0; rest = walk.take(3)) {
        visited.push(...rest.map(sightOf));
      }
      assert.equal(walk.count, expected.length);
      assert.deepEqual(new Set(visited.map(String)), new Set(expected.map(String)));
      assert.equal(visited.length, expected.length);
    }),
    { numRuns: 500 },
  );
});

function sightOf({ id, lastSeen, status, remoteAddr }: ContactView): readonly unknown[] {
  return [id, lastSeen, status, remoteAddr];
}

test('a walk that was ended visits nothing more', () => {
  const liveness = createLiveness(WINDOW, createCertificateNumbers());
  for (const id of ['a', 'b']) liveness.touch(id, { at: 1, status: '', remoteAddr: '', chain: 0 });
  const walk = liveness.walk(1);
  assert.equal(walk.take(1).length, 1);
  walk.end();
  liveness.retire('a');
  assert.deepEqual(walk.take(1), []);
});

test('the floor of a node without a window applies before and after its first claim', () => {
  const windows = createNonceWindows(WINDOW, (nodeKey) => (nodeKey === 'known' ? 50 : 0));
  assert.equal(windows.check('known', 'n1', 50), 'stale_timestamp');
  assert.equal(windows.check('known', 'n1', 51), 'fresh');
  assert.equal(windows.check('other', 'n1', 1), 'fresh');
  windows.claim('known', 'n1', 51, 51);
  assert.equal(windows.check('known', 'n1', 52), 'nonce_replay');
  assert.equal(windows.check('known', 'n2', 50), 'stale_timestamp');
});

test('a window holds 256 nonces through all its growth, and refuses what is older than those', () => {
  const windows = createNonceWindows(WINDOW, () => 0);
  for (let i = 1; i <= 300; i += 1) {
    assert.equal(windows.check('node', `n${i}`, i), 'fresh', `${i}`);
    windows.claim('node', `n${i}`, i, i);
  }
  for (let i = 45; i <= 300; i += 1) {
    assert.equal(windows.check('node', `n${i}`, 1000), 'nonce_replay', `${i}`);
  }
  assert.equal(windows.check('node', 'n1', 44), 'stale_timestamp');
  assert.equal(windows.check('node', 'another', 45), 'fresh');
});

test('the index of certificates knows all certificates of a key, for as many keys as there are', () => {
  const numbers = createCertificateNumbers();
  const subjects = createSubjects(numbers);
  const index = createCertificateIndex({ subjects, numbers, seed: 1 });
  subjects.follow({ certificate: { decided: index.add } });
  const restore = (id: string, nodePublicKey: string, version: number) => {
    const context = { nodePublicKey, issuedAt: 0, expiresAt: 10, supersededFrom: null };
    subjects.restore('certificate', id, { version, value: 'issued', context: context as never });
  };
  for (let i = 0; i < 3000; i += 1) restore(`c-${i}`, `key-${i}`, 1);
  restore('second', 'key-7', 1);
  restore('third', 'key-7', 2);
  restore('second', 'key-7', 2);
  assert.deepEqual(index.ownedBy('key-7').sort(), ['c-7', 'second', 'third']);
  for (let i = 8; i < 3000; i += 1) assert.deepEqual(index.ownedBy(`key-${i}`), [`c-${i}`]);
  assert.deepEqual(index.ownedBy('nobody'), []);
  assert.equal(index.hasActive('key-7', 9), true);
  assert.equal(index.hasActive('key-7', 10), false);
  assert.equal(index.hasActive('nobody', 9), false);
});
