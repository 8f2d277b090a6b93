/** Spent nonces, compared with plain sets: the durable ledger, and heartbeat windows with small rings. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createRefusedTimes } from '../../src/authority/replay/earlier-requests.ts';
import { createNonceLedger } from '../../src/authority/replay/nonce-ledger.ts';
import { createNonceWindows } from '../../src/authority/replay/nonce-window.ts';

const MINUTE = 60_000;
const nonce = fc.integer({ min: 0, max: 12 }).map((n) => `n-${n}`);
const scope = fc.constantFrom('node:a', 'node:b', 'join:a');

/** How long nonces are kept with this tolerance. */
const keptWith = (tolerance: number) => 2 * Math.max(tolerance, 5 * MINUTE) + MINUTE;

test('a nonce is spent until its time has passed, across restarts with any tolerance too', () => {
  const step = fc.record({
    what: fc.constantFrom('spend', 'spend', 'forget', 'restart'),
    scope,
    nonce,
    tolerance: fc.constantFrom(MINUTE, 5 * MINUTE, 20 * MINUTE),
    wait: fc.integer({ min: 0, max: 8 * MINUTE }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 100, size: 'max' }), (steps) => {
      let now = 1_000_000;
      let startedAt = now;
      let keep = keptWith(0);
      let ledger = createNonceLedger(0, () => now);
      let stored: { digest: string; forgetAt: number }[] = [];
      const spentAt = new Map<string, number>();
      for (const { what, scope, nonce, tolerance, wait } of steps) {
        now += wait;
        if (what === 'spend') {
          stored.push(ledger.spend(scope, nonce, now));
          spentAt.set(`${scope} ${nonce}`, now);
        } else if (what === 'forget') {
          const before = ledger.forget(now);
          for (const [key, at] of spentAt) {
            if (Math.max(at, startedAt) + keep + MINUTE < now)
              assert.ok(!ledger.isSpent(...split(key)), key);
          }
          stored = stored.filter(({ forgetAt }) => forgetAt >= before);
        } else {
          startedAt = now;
          const forgotten = ledger.forgottenTimes();
          keep = keptWith(tolerance);
          ledger = createNonceLedger(tolerance, () => now);
          ledger.restoreForgotten(forgotten);
          for (const one of stored) ledger.restore(one);
        }
        for (const [key, at] of spentAt) {
          if (!ledger.isForgotten(at)) assert.ok(ledger.isSpent(...split(key)), key);
          assert.ok(!ledger.isForgotten(now - keptWith(0) + 1));
        }
        assert.ok(!ledger.isSpent('node:c', nonce));
      }
    }),
  );
});

function split(key: string): [string, string] {
  const [scope = '', nonce = ''] = key.split(' ');
  return [scope, nonce];
}

test('the times of discarded nonces cover all of them, stay few, and do not block the present', () => {
  const minutes = fc.integer({ min: 0, max: 2000 });
  fc.assert(
    fc.property(fc.array(minutes, { maxLength: 60 }), (forgotten) => {
      let times = createRefusedTimes([]);
      const present = 1000.5 * MINUTE;
      for (const [index, minute] of forgotten.entries()) {
        times.add([minute * MINUTE, (minute + 1) * MINUTE], present);
        if (index % 7 === 0) times = createRefusedTimes(times.all());
      }
      for (const minute of forgotten) {
        assert.ok(times.has((minute + 1) * MINUTE) && times.has(minute * MINUTE + 1));
      }
      assert.equal(times.has(present), forgotten.includes(1000));
      const ranges = times.all();
      assert.ok(ranges.length <= 16);
      for (const [index, [after, until]] of ranges.entries()) {
        assert.ok(after < until && after > (ranges[index - 1]?.[1] ?? -1));
      }
    }),
  );
});

interface Claimed {
  readonly nonce: string;
  readonly signedAt: number;
}

test('no nonce is accepted twice, and nothing fresh is refused, whatever the rings keep and discard', () => {
  const tolerance = 50_000;
  const step = fc.record({
    what: fc.constantFrom('beat', 'beat', 'beat', 'idle'),
    node: fc.constantFrom('a', 'b', 'c'),
    nonce,
    drift: fc.integer({ min: -tolerance, max: tolerance }),
    wait: fc.integer({ min: 0, max: 60_000 }),
  });
  const exponent = fc.integer({ min: 0, max: 3 });
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 200, size: 'max' }),
      exponent,
      exponent,
      (steps, f, g) => {
        const sizes = { full: 2 ** Math.max(f, g), first: 2 ** Math.min(f, g) };
        const windows = createNonceWindows(tolerance, () => 0, sizes);
        const accepted = new Map<string, Claimed[]>();
        let now = 1_000_000;
        for (const { what, node, nonce, drift, wait } of steps) {
          now += wait;
          if (what === 'idle') {
            windows.forgetIdle(now);
            continue;
          }
          const signedAt = now + drift;
          const before = accepted.get(node) ?? [];
          const verdict = windows.check(node, nonce, signedAt);
          // What the window may contain: the newest nonces whose timestamps could still pass.
          const held = before.slice(-sizes.full);
          const isReplay = before.some(
            (one) =>
              one.nonce === nonce && one.signedAt === signedAt && signedAt >= now - tolerance,
          );
          if (isReplay) assert.notEqual(verdict, 'fresh');
          if (verdict === 'nonce_replay') assert.ok(held.some((one) => one.nonce === nonce));
          if (verdict === 'stale_timestamp') {
            const forgotten = before.slice(0, -sizes.full);
            assert.ok(forgotten.some((one) => one.signedAt >= signedAt));
          }
          if (verdict !== 'fresh') continue;
          windows.claim(node, nonce, signedAt, now);
          accepted.set(node, [...before, { nonce, signedAt }]);
        }
        for (let i = 0; i < 2; i += 1) windows.forgetIdle(now + 2 * tolerance + 2 * MINUTE);
        assert.equal(windows.count(), 0);
      },
    ),
    { numRuns: 500 },
  );
});

test('a window is dropped only when everything that it would refuse is refused for its age', () => {
  const windows = createNonceWindows(50, () => 0, { full: 2, first: 1 });
  for (const [index, signedAt] of [100, 101, 102].entries()) {
    windows.claim('a', `n-${index}`, signedAt, 102);
  }
  assert.equal(windows.check('a', 'n-9', 100), 'stale_timestamp');
  windows.forgetIdle(102 + 50 + MINUTE);
  assert.equal(windows.count(), 1, 'a request signed at 102 may still be judged');
  assert.equal(windows.check('a', 'n-2', 102), 'nonce_replay');
  windows.forgetIdle(103 + 50 + MINUTE);
  assert.equal(windows.count(), 0);
});

test('500 heartbeats within the tolerance are all accepted, and none of them twice', () => {
  const windows = createNonceWindows(5 * MINUTE, () => 0);
  const beats = Array.from({ length: 500 }, (_, index) => ({
    nonce: `n-${index}`,
    at: 100 * (index + 1),
  }));
  for (const { nonce, at } of beats) {
    assert.equal(windows.check('a', nonce, at), 'fresh');
    windows.claim('a', nonce, at, at);
  }
  for (const { nonce, at } of beats) assert.notEqual(windows.check('a', nonce, at), 'fresh');
});
