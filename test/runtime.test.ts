import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemRuntime } from '../src/base/runtime.ts';

const { randomBytes } = systemRuntime;

test('Random bytes are never returned twice, even if their pool is refilled', () => {
  const drawn = Array.from({ length: 2000 }, () => randomBytes(24).toString('hex'));
  assert.equal(new Set(drawn).size, drawn.length);
});

test('Any number of random bytes can be requested, even more than the pool contains', () => {
  for (const length of [0, 1, 4095, 4096, 4097, 10_000]) {
    const bytes = randomBytes(length);
    assert.equal(bytes.length, length);
    if (length > 100) assert.ok(new Set(bytes).size > 50, `${length} bytes`);
  }
});

test('Returned bytes do not change when others are drawn', () => {
  const first = randomBytes(32);
  const text = first.toString('hex');
  for (let drawn = 0; drawn < 1000; drawn += 1) randomBytes(32);
  assert.equal(first.toString('hex'), text);
});
