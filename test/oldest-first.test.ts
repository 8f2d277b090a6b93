import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { oldestFirst } from '../src/edge/limits/rate-limit.ts';

const step = fc.record({
  what: fc.constantFrom('set', 'set', 'delete', 'take'),
  key: fc.nat({ max: 12 }),
});

test('Keys are taken in the order in which they were last set, through any sets and deletes', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
      const map = new Map<number, null>();
      const oldest = oldestFirst(map);
      let model: number[] = [];
      for (const { what, key } of steps) {
        if (what === 'take') {
          assert.equal(oldest.take(), model.shift());
        } else {
          map.delete(key);
          model = model.filter((other) => other !== key);
          if (what === 'delete') continue;
          map.set(key, null);
          model.push(key);
        }
        assert.deepEqual([...map.keys()], model);
      }
    }),
    { numRuns: 500 },
  );
});

test('A map whose oldest key makes room for each new one keeps the newest', () => {
  const map = new Map<number, null>();
  const oldest = oldestFirst(map);
  for (let key = 0; key < 20_000; key += 1) {
    map.set(key, null);
    if (map.size > 1000) oldest.take();
  }
  assert.deepEqual([...map.keys()].slice(0, 3), [19_000, 19_001, 19_002]);
  assert.equal(map.size, 1000);
});
