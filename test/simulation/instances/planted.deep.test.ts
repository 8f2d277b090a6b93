/** A check of the simulation of instances itself: each of these defects has to be found. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FromWriter } from '../../../src/server/link/messages.ts';
import type { Defect } from './play.ts';
import { describe, simulate } from './simulate.ts';

const HISTORIES = 400;

let isLost = false;

const DEFECTS: readonly (readonly [string, Defect])[] = [
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

for (const [name, defect] of DEFECTS) {
  test(`${name} is found`, async (t) => {
    const finding = await simulate({ histories: HISTORIES, seed: 1, shrinks: false }, defect);
    assert.ok(finding !== null, `${HISTORIES} histories have not found it`);
    t.diagnostic(describe(finding).split('\n', 1).join());
  });
}
