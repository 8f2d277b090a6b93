/** Replay protection as a whole: what may be accepted when, after a start, a crash and a restore. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  createReplay,
  type Replay,
  type ReplayRule,
  refusedAfterRestore,
} from '../../src/authority/replay/replay.ts';
import { createCertificateNumbers } from '../../src/authority/subjects/numbering.ts';
import { createSubjects } from '../../src/authority/subjects/subjects.ts';
import { UnitOfWork } from '../../src/authority/subjects/unit-of-work.ts';
import { Refusal } from '../../src/protocol/refusals.ts';
import type { SpentNonce } from '../../src/store/store.ts';
import { inOneBatch } from '../support/stored.ts';

const TOLERANCE = 300_000;
const START = 1_000_000_000;

const HEARTBEAT: ReplayRule = { scope: 'node', window: true, durable: false };
const RENEWAL: ReplayRule = { scope: 'node', window: true, durable: true };
const OPERATOR: ReplayRule = { scope: 'admin', window: false, durable: true };

function replayAt(clock: { now: number }, newestSigned = 0): Replay {
  return createReplay({
    toleranceMs: TOLERANCE,
    flushIntervalMs: 1000,
    now: () => clock.now,
    elapsed: () => clock.now,
    newestSignedBy: () => newestSigned,
  });
}

const request = (nonce: string, signedAt: number) => ({ nonce, signedAt, identity: null });

/** Spends the nonce; returns what the store has to save of it. */
function spend(replay: Replay, rule: ReplayRule, nonce: string, at: number): readonly SpentNonce[] {
  const unit = new UnitOfWork(createSubjects(createCertificateNumbers()), at);
  replay.spend(unit, rule, 'key', request(nonce, at));
  return unit.nonces;
}

test('no heartbeat is accepted before the start', () => {
  const replay = replayAt({ now: START });
  const first = request('n', START);
  assert.equal(replay.check(HEARTBEAT, 'key', first, true), 'stale_timestamp');
  replay.begin(START, 0);
  assert.equal(replay.check(HEARTBEAT, 'key', first, true), 'fresh');
});

for (const [name, rule] of Object.entries({ HEARTBEAT, RENEWAL, OPERATOR })) {
  test(`a nonce is accepted once, and again from another key: ${name}`, () => {
    const replay = replayAt({ now: START });
    replay.begin(START, 0);
    spend(replay, rule, 'n', START + 1);
    const again = request('n', START + 1);
    assert.equal(replay.check(rule, 'key', again, true), 'nonce_replay');
    assert.equal(replay.check(rule, 'other', again, true), 'fresh');
  });
}

test('a heartbeat is answered before it is stored only within a range that is stored', () => {
  const clock = { now: START };
  const replay = replayAt(clock);
  replay.begin(START, 0);
  assert.equal(spend(replay, HEARTBEAT, 'a', START).length, 1, 'no range is stored yet');
  const ranges = replay.rangesToStore(START);
  assert.equal(spend(replay, HEARTBEAT, 'b', START).length, 1, 'nor is it before that is on disk');
  replay.rangesStored();
  assert.deepEqual(spend(replay, HEARTBEAT, 'c', START), []);
  const until = ranges.at(-1)?.[1] ?? 0;
  assert.equal(spend(replay, HEARTBEAT, 'd', until + 1).length, 1);
  assert.equal(spend(replay, RENEWAL, 'e', START).length, 1, 'a renewal never');
});

test('after a crash, what was answered and not stored is refused, and what was stored is known', async () => {
  const clock = { now: START };
  const before = replayAt(clock);
  before.begin(START, 0);
  const unstoredTimes = before.rangesToStore(START);
  before.rangesStored();
  spend(before, HEARTBEAT, 'beat', START);
  const nonces = spend(before, OPERATOR, 'operation', START);

  const after = replayAt(clock);
  await after.restore({ nonces: inOneBatch(nonces), answers: inOneBatch([]), forgottenTimes: [] });
  const wait = after.afterCrash(unstoredTimes);
  assert.ok(wait > 0 && wait <= 2000);
  clock.now += wait;
  after.begin(clock.now, 0);
  const beat = (nonce: string, at: number) =>
    after.check(HEARTBEAT, 'key', request(nonce, at), true);
  assert.equal(beat('beat', START), 'stale_timestamp');
  assert.equal(beat('any', unstoredTimes.at(-1)?.[1] ?? 0), 'stale_timestamp');
  assert.equal(beat('new', clock.now + 1), 'fresh', 'after the wait, what is signed now passes');
  const operation = request('operation', START);
  assert.equal(after.check(OPERATOR, 'key', operation, true), 'nonce_replay');
  assert.equal(after.mustStartAsCrashed(), true);
  clock.now += 2 * TOLERANCE;
  assert.equal(after.mustStartAsCrashed(), false);
});

test('after a clean stop, a node continues after what it signed last', () => {
  const replay = replayAt({ now: START }, START - 10);
  replay.begin(START, START - 10);
  const verdict = (at: number) => replay.check(HEARTBEAT, 'key', request('n', at), true);
  assert.deepEqual([verdict(START - 10), verdict(START - 9)], ['stale_timestamp', 'fresh']);
  assert.equal(replay.mustStartAsCrashed(), false);
});

test('when the clock is set back, a node that has been silent continues after the present', () => {
  const clock = { now: START };
  const replay = replayAt(clock, START);
  replay.begin(START, 0);
  clock.now -= 2 * TOLERANCE;
  replay.clockSetBack(clock.now);
  const verdict = (at: number) => replay.check(HEARTBEAT, 'key', request('n', at), true);
  assert.deepEqual([verdict(clock.now), verdict(clock.now + 1)], ['stale_timestamp', 'fresh']);
});

test('after a restore, everything signed before is refused; a genuine sender learns until when', async () => {
  const clock = { now: START };
  const until = START + TOLERANCE;
  const stored = refusedAfterRestore([], until, START);
  const replay = replayAt(clock);
  await replay.restore({ ...stored, nonces: inOneBatch([]), answers: inOneBatch([]) });
  assert.equal(replay.afterCrash(stored.unstoredTimes), 0, 'a start does not wait for that long');
  replay.begin(START, 0);
  assert.equal(replay.refusedUntil(START), until);
  for (const rule of [HEARTBEAT, RENEWAL, OPERATOR]) {
    const old = request('n', until);
    assert.throws(
      () => replay.check(rule, 'key', old, true),
      (cause) => cause instanceof Refusal && cause.refusal === 'restored_recently',
    );
    assert.equal(replay.check(rule, 'key', old, false), 'stale_timestamp');
    assert.equal(replay.check(rule, 'key', request('n', until + 1), true), 'fresh');
  }
});

test('discarded nonces stay refused if the clock is set back', () => {
  const clock = { now: START };
  const replay = replayAt(clock);
  replay.begin(START, 0);
  spend(replay, OPERATOR, 'n', START);
  clock.now += 3 * TOLERANCE;
  replay.forget(clock.now);
  replay.clockSetBack(START);
  assert.equal(replay.check(OPERATOR, 'key', request('n', START), true), 'stale_timestamp');
});
