import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemRuntime } from '../src/base/runtime.ts';

const { randomBytes } = systemRuntime;

test('Random bytes are never given twice, also where the pool that they come from is filled again', () => {
  const drawn = Array.from({ length: 2000 }, () => randomBytes(24).toString('hex'));
  assert.equal(new Set(drawn).size, drawn.length);
});

test('Random bytes are as many as were asked for, more than the pool holds included', () => {
  for (const length of [0, 1, 4095, 4096, 4097, 10_000]) {
    const bytes = randomBytes(length);
    assert.equal(bytes.length, length);
    if (length > 100) assert.ok(new Set(bytes).size > 50, `${length} bytes`);
  }
});

test('Bytes that were given do not change when others are drawn', () => {
  const first = randomBytes(32);
  const text = first.toString('hex');
  for (let drawn = 0; drawn < 1000; drawn += 1) randomBytes(32);
  assert.equal(first.toString('hex'), text);
});
