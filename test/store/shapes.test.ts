import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { openLmdbStore } from '../../src/store/lmdb/store.ts';
import { measured } from '../../src/store/measured.ts';
import { createShapes, createSharing, MAX_SHAPES } from '../../src/store/shapes.ts';
import { networkFolder } from '../support/folders.ts';
import { unit } from './conformance.ts';

function same<T>(value: T): T {
  return value;
}

test('a snapshot is restored with its members in their order', () => {
  const shapes = createShapes([]);
  const snapshot = { value: 'issued', context: { b: 1, a: [1, { c: null }], '': undefined } };
  const built = shapes.build(shapes.flatten(snapshot), same);
  assert.deepEqual(built, snapshot);
  assert.deepEqual(Object.keys(built.context), ['b', 'a', '']);
});

test('snapshots with the same members share a shape, others get their own', () => {
  const shapes = createShapes([]);
  const contexts = [{ a: 1, b: 2 }, { a: 3, b: 4 }, { b: 1, a: 2 }, { 'a","b': 1 }, {}];
  const numbers = contexts.map((context) => shapes.flatten({ value: 's', context })[0]);
  assert.deepEqual(numbers, [0, 0, 1, 2, 3]);
  assert.deepEqual(shapes.table, [['a', 'b'], ['b', 'a'], ['a","b'], []]);
});

test('a table that was stored keeps its numbers', () => {
  const first = createShapes([]);
  const stored = first.flatten({ value: 's', context: { a: 1 } });
  first.flatten({ value: 's', context: { b: 1 } });
  const second = createShapes(first.table);
  assert.deepEqual(second.build(stored, same).context, { a: 1 });
  assert.equal(second.flatten({ value: 's', context: { c: 1 } })[0], 2);
});

test('a member called __proto__ is an ordinary member', () => {
  const shapes = createShapes([]);
  const context = JSON.parse('{"__proto__":{"polluted":true}}') as object;
  const built = shapes.build(shapes.flatten({ value: 's', context }), same).context;
  assert.deepEqual(Object.keys(built), ['__proto__']);
  assert.equal(Object.getPrototypeOf(built), Object.prototype);
});

test('when the table is full, contexts of a new shape are kept unchanged', () => {
  const known = Array.from({ length: MAX_SHAPES }, (_, i) => [`member-${i}`]);
  const shapes = createShapes(known);
  const snapshot = { value: 's', context: { another: 1 } };
  const stored = shapes.flatten(snapshot);
  assert.equal(stored[0], null);
  assert.equal(shapes.table.length, MAX_SHAPES);
  assert.deepEqual(shapes.build(stored, same), snapshot);
});

test('snapshots of any shapes are restored unchanged, even with a full table', () => {
  const name = fc.oneof(fc.constantFrom('a', 'b', '__proto__', '0', '10', ''), fc.string());
  const context = fc.dictionary(name, fc.anything(), { maxKeys: 4, noNullPrototype: true });
  fc.assert(
    fc.property(fc.array(context), fc.nat({ max: 4 }), (contexts, maxShapes) => {
      const shapes = createShapes([], maxShapes);
      const stored = contexts.map((context) => shapes.flatten({ value: 's', context }));
      assert.ok(shapes.table.length <= maxShapes);
      const reopened = createShapes(structuredClone(shapes.table), maxShapes);
      for (const [index, one] of stored.entries()) {
        const built = reopened.build(one, same).context;
        assert.deepEqual(built, contexts[index]);
        assert.deepEqual(Object.keys(built), Object.keys(contexts[index] ?? {}));
      }
    }),
  );
});

test('a snapshot of an unknown shape is refused', () => {
  assert.throws(() => createShapes([]).build([7, 's', 1], same), {
    message: 'The store has no shape 7',
  });
});

test('short texts and lists of them are shared, and are equal to what they replace', () => {
  const share = createSharing();
  const first = share(['role:client', 'role:a'], 0);
  assert.equal(share(['role:client', 'role:a'], 0), first);
  for (const other of [
    ['role:client\nrole:a'],
    ['role:a', 'role:client'],
    [],
    [''],
    ['a', 1],
    'x'.repeat(1000),
    7n,
    null,
    undefined,
    { nested: true },
  ]) {
    const copy = structuredClone(other);
    assert.deepEqual(share(copy, 0), other);
  }
});

test('shared texts are equal to what they replace, wherever they come from', () => {
  const text = fc.constantFrom('', 'a', 'b', 'a\nb', 'x'.repeat(41));
  const value = fc.oneof(text, fc.array(fc.oneof(text, fc.nat())), fc.anything());
  fc.assert(
    fc.property(
      fc.array(fc.tuple(value, fc.nat({ max: 2 }))),
      fc.nat({ max: 3 }),
      (values, most) => {
        const share = createSharing(most);
        for (const [one, place] of values) assert.deepEqual(share(one, place), one);
      },
    ),
  );
});

test('a commit that has not reached the disk after two seconds makes the store unhealthy until it does', async () => {
  await using folder = await networkFolder('alpha');
  const disk = openLmdbStore(folder.path);
  await disk.load();
  let release = () => {};
  const stuck = new Promise<void>((resolve) => {
    release = resolve;
  });
  let now = 0;
  const store = measured(
    { ...disk, commit: (unit) => stuck.then(() => disk.commit(unit)) },
    { elapsed: () => now, stored: () => undefined },
  );
  const committed = store.commit(unit());
  now = 1999;
  assert.equal(store.health(), null);
  now = 2001;
  assert.equal(store.health(), 'a commit does not reach the disk');
  release();
  await committed;
  assert.equal(store.health(), null);
  await disk.close();
});
