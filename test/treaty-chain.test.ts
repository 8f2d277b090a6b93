/** Which keys a treaty names after it has followed a chain, for any chain and any clock [core-4-13-1]. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { keysInForce } from '../src/protocol/records/authority-chain.ts';
import type { AuthoritySuccession } from '../src/protocol/records/authority-succession.ts';
import {
  acceptedKeys,
  followForTreaty,
  type TreatyPin,
} from '../src/protocol/records/treaty-chain.ts';
import {
  chainAt,
  countedKey,
  FIRST,
  HOUR,
  ROOT,
  START,
  type Step,
  TOOLS,
} from './support/authority-chain.ts';

const OTHER = countedKey(39).publicKey;

/** Steps in ascending order of time; a rollback follows its planned change. */
const STEPS: fc.Arbitrary<Step[]> = fc
  .array(
    fc.record({
      kind: fc.constantFrom('planned' as const, 'compromise' as const),
      wait: fc.integer({ min: 1, max: 20 }),
      overlap: fc.integer({ min: 0, max: 30 }),
      isRolledBack: fc.boolean(),
    }),
    { minLength: 1, maxLength: 5 },
  )
  .map((drawn) => {
    let at = 0;
    return drawn.flatMap(({ kind, wait, overlap, isRolledBack }): Step[] => {
      at += wait;
      const step = { kind, at, overlap };
      const goesBack = kind === 'planned' && isRolledBack;
      return goesBack ? [step, { ...step, kind: 'roll_back' }] : [step];
    });
  });

/** What the treaty knows after it has followed the chain at this time. */
function followed(pin: TreatyPin, chain: readonly AuthoritySuccession[], now: number): TreatyPin {
  const verdict = followForTreaty(pin, null, { successions: chain }, now, TOOLS);
  assert.equal(verdict.refusal, null, verdict.refusal?.message);
  if (verdict.refusal !== null || verdict.inForce.length === 0) return pin;
  const subjectKeys = acceptedKeys(verdict.inForce, pin.subjectKeys, now);
  return { ...pin, subjectKeys, followed: verdict.inForce };
}

test('a treaty names the current key first, then only keys that may still sign, and never goes back', () => {
  const hours = fc.array(fc.integer({ min: 0, max: 130 }), { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(STEPS, hours, fc.integer({ min: 0, max: 130 }), (steps, drawn, later) => {
      const chain = chainAt(START, 'beta', steps);
      let treaty: TreatyPin = {
        subject: 'beta',
        subjectKeys: [FIRST.publicKey, OTHER],
        rootKey: ROOT.publicKey,
        followed: [],
      };
      for (const hour of drawn.toSorted((a, b) => a - b)) {
        const now = START + hour * HOUR;
        treaty = followed(treaty, chain, now);
        if (treaty.followed.length === 0) continue;
        const states = new Map(
          keysInForce(treaty.followed, now).map(({ public_key, state }) => [public_key, state]),
        );
        const [current, ...rest] = treaty.subjectKeys.filter((key) => key !== OTHER);
        assert.equal(states.get(current ?? ''), 'current');
        for (const key of rest) assert.equal(states.get(key), 'previous');
        assert.ok(treaty.subjectKeys.includes(OTHER), 'a key outside the chain stays');
      }
      // No key that was stolen by the time the treaty followed is accepted at any time, even an earlier one.
      const at = START + later * HOUR;
      const stolen = treaty.followed.flatMap(({ kind, from_key }) =>
        kind === 'compromise' ? [from_key] : [],
      );
      const accepted = acceptedKeys(treaty.followed, treaty.subjectKeys, at);
      if (treaty.followed.length === 0) return;
      for (const key of stolen) assert.ok(!accepted.includes(key), key);
      const shorter = treaty.followed.slice(0, -1);
      assert.equal(
        followForTreaty(treaty, null, { successions: shorter }, at, TOOLS).refusal?.reason,
        'shorter',
      );
    }),
    { numRuns: 60 },
  );
});
