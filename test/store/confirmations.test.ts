/** What the database must have confirmed before an answer from memory leaves the process that writes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type Confirmations,
  createConfirmations,
} from '../../src/store/postgresql/confirmations.ts';
import type { LeaseTable } from '../../src/store/postgresql/lease-table.ts';

/** Confirmations whose questions the test answers one by one. */
function asked() {
  let now = 1000;
  const timers: { at: number; work: () => void }[] = [];
  const questions: { sentAt: number; answer(isAlive: boolean | null | Error): void }[] = [];
  const log: string[] = [];
  const confirmations: Confirmations = createConfirmations({
    clock: {
      elapsed: () => now,
      after(milliseconds, work) {
        timers.push({ at: now + milliseconds, work });
        return () => undefined;
      },
    },
    async connect() {
      log.push('connect');
      return { disconnect: async () => void log.push('disconnect') } as unknown as LeaseTable;
    },
    ask: () =>
      new Promise((resolve, reject) => {
        questions.push({
          sentAt: now,
          answer: (given) => (given instanceof Error ? reject(given) : resolve(given)),
        });
      }),
    lost() {
      log.push('lost');
      confirmations.end();
    },
    answered: () => undefined,
  });

  async function settle(): Promise<void> {
    await new Promise(setImmediate);
  }

  return {
    confirmations,
    questions,
    log,
    async waits(milliseconds: number): Promise<void> {
      now += milliseconds;
      for (const timer of timers.filter(({ at }) => at <= now)) {
        timers.splice(timers.indexOf(timer), 1);
        timer.work();
      }
      await settle();
    },
    /** The outcome so far; undefined while it is open. */
    async outcomeSince(time: number): Promise<{ readonly of: boolean | undefined }> {
      const outcome: { of: boolean | undefined } = { of: undefined };
      void confirmations.since(time)?.then((isHolder) => {
        outcome.of = isHolder;
      });
      await settle();
      return outcome;
    },
    now: () => now,
  };
}

test('all waiters share the next question, and none gets the answer to an earlier one', async () => {
  const { confirmations, questions, outcomeSince, waits, now } = asked();
  const first = await outcomeSince(now());
  assert.equal(questions.length, 1);
  await waits(5);
  const [second, third] = [await outcomeSince(now()), await outcomeSince(now())];
  assert.equal(questions.length, 1, 'one at a time');
  questions[0]?.answer(true);
  await waits(0);
  assert.deepEqual([first.of, second.of, third.of], [true, undefined, undefined]);
  questions[1]?.answer(true);
  await waits(0);
  assert.deepEqual([second.of, third.of], [true, true]);
  assert.equal(confirmations.since(now()), null, 'it was sent at this time');
  await waits(1);
  await outcomeSince(now());
  assert.equal(questions.length, 3);
});

test('a statement that only the holder can carry out answers those who came before it was sent', async () => {
  const { confirmations, questions, outcomeSince, waits, now } = asked();
  const waiting = await outcomeSince(now());
  await waits(1);
  confirmations.note(now());
  await waits(0);
  assert.equal(waiting.of, true);
  assert.equal(confirmations.since(now()), null);
  confirmations.note(now() - 1);
  assert.equal(confirmations.since(now()), null, 'an earlier one takes nothing back');
  questions[0]?.answer(null);
});

test('a database that does not answer, or has a lease that has expired, is asked again', async () => {
  const { questions, outcomeSince, waits, now, log } = asked();
  const waiting = await outcomeSince(now());
  questions[0]?.answer(new Error('cut'));
  await waits(0);
  assert.deepEqual(log, ['connect', 'disconnect']);
  await waits(50);
  questions[1]?.answer(false);
  await waits(0);
  assert.equal(waiting.of, undefined);
  await waits(50);
  questions[2]?.answer(true);
  await waits(0);
  assert.equal(waiting.of, true);
  assert.deepEqual(log, ['connect', 'disconnect', 'connect']);
});

test('a former holder confirms nothing to anyone', async () => {
  const { confirmations, questions, outcomeSince, waits, now, log } = asked();
  const waiting = await outcomeSince(now());
  questions[0]?.answer(null);
  await waits(0);
  assert.equal(waiting.of, false);
  assert.deepEqual(log, ['connect', 'lost', 'disconnect']);
  confirmations.note(now() + 10);
  assert.equal(await confirmations.since(now()), false);
});
