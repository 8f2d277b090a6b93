/** A check of the simulation of instances itself: each of these defects has to be found. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { FromWriter } from '../../../src/server/link/messages.ts';
import { type History, histories, INSTANCES } from './histories.ts';
import type { Defect } from './play.ts';
import { describe, simulate } from './simulate.ts';

const HISTORIES = 400;

let isLost = false;

/** An instance hands over, and the database loses that soon afterward. */
const lostHandOvers = fc
  .record({
    history: histories,
    instance: fc.nat(INSTANCES - 1),
    later: fc.integer({ min: 20, max: 300 }),
    lasts: fc.nat(5),
  })
  .map(({ history, instance, later, lasts }): History => {
    const stop = { at: 200, what: 'stop', instance, lasts } as const;
    const loss = { at: 200 + later, what: 'database loses its end', instance, lasts } as const;
    return { ...history, faults: [stop, loss] };
  });

const DEFECTS: readonly (readonly [string, Defect, fc.Arbitrary<History>?])[] = [
  [
    'a database that lets a former holder of the lease write',
    {
      database(database) {
        database.commit = (entry) => database.store(entry);
      },
    },
  ],
  [
    'a lease that nobody takes before the clock of the database says that it is over',
    {
      database(database) {
        const { lasts } = database;
        database.lasts = () => Math.max(lasts.call(database), database.remaining());
      },
    },
  ],
  [
    'a holder that is known by its number alone',
    {
      database(database) {
        database.isHeldBy = ({ epoch }) => database.lease.epoch === epoch;
      },
    },
    lostHandOvers,
  ],
  ['a turn that does not remember what was seen', { remembersNothing: true }],
  ['an answer that the database has not confirmed', { answersUnconfirmed: true }],
  [
    'news that are lost now and then',
    {
      tamper(message) {
        const sent = message as FromWriter;
        if (sent.type !== 'answers' || sent.news === null) return [sent];
        isLost = !isLost;
        return isLost ? [{ ...sent, news: { ...sent.news, documents: [] } }] : [sent];
      },
    },
  ],
  [
    'an unknown outcome that is called nothing done',
    {
      told: (answer) =>
        answer.ok || answer.refusal !== 'outcome_unknown'
          ? answer
          : { ...answer, refusal: 'authority_unavailable' },
    },
  ],
];

for (const [name, defect, drawn] of DEFECTS) {
  test(`${name} is found`, async (t) => {
    const finding = await simulate(
      { histories: HISTORIES, seed: 1, shrinks: false },
      defect,
      drawn,
    );
    assert.ok(finding !== null, `${HISTORIES} histories have not found it`);
    t.diagnostic(describe(finding).split('\n', 1).join());
  });
}

test('a hand-over that the database has lost does no harm without a defect', async () => {
  const draw = { histories: 100, seed: 1 } as const;
  assert.equal(await simulate(draw, {}, lostHandOvers), null);
});
