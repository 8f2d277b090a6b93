/** Periodic work: what happens when a run fails, and when the process stops during a run. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createBackground } from '../src/server/lifecycle/background.ts';
import { testClock } from './support/clock.ts';

test('runs of a background job never overlap, a failure is logged, and each success is reported', async () => {
  const lines: string[] = [];
  const succeeded: string[] = [];
  const logger = {
    write: (level: string, area: string, message: string) =>
      lines.push(`${level} ${area} ${message}`),
    request: () => undefined,
  };
  const background = createBackground({
    after: testClock().after,
    logger,
    succeeded: (job) => succeeded.push(job),
  });
  let underWay = 0;
  let runs = 0;
  background.start('counting', 3_600_000, async () => {
    underWay += 1;
    assert.equal(underWay, 1);
    await new Promise(setImmediate);
    underWay -= 1;
    runs += 1;
    if (runs === 2) throw new Error('the second run');
  });
  const runNow = () => background.runNow('counting');
  const outcomes = await Promise.allSettled([runNow(), runNow(), runNow()]);
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  );
  runs = 1;
  await background.attempt('counting');
  assert.match(lines.join(), /^ERROR background counting failed: Error: the second run at /);
  assert.deepEqual(succeeded, ['counting', 'counting']);
  await background.stop();
});

test('stopping background work waits for the current run', async () => {
  const background = createBackground({
    after: testClock().after,
    logger: { write: () => undefined, request: () => undefined },
    succeeded: () => undefined,
  });
  let finish = () => {};
  background.start('long', 3_600_000, () => new Promise<void>((resolve) => (finish = resolve)));
  const run = background.runNow('long');
  let stopped = false;
  const stopping = background.stop().then(() => (stopped = true));
  await new Promise(setImmediate);
  assert.equal(stopped, false);
  finish();
  await Promise.all([run, stopping]);
});

test('a job runs when the clock has reached its time, and again one period after it has ended', async () => {
  const clock = testClock();
  const runs: number[] = [];
  const background = createBackground({
    after: clock.after,
    logger: { write: () => undefined, request: () => undefined },
    succeeded: () => undefined,
  });
  const began = clock.now();
  background.start('noting', 1000, () => void runs.push(clock.now() - began));
  background.start('asked for', null, () => void runs.push(-1));
  for (const milliseconds of [999, 1, 10_000, 999, 1]) {
    clock.advance(milliseconds);
    await clock.idle();
  }
  assert.deepEqual(runs, [1000, 11_000, 12_000]);
  await background.stop();
  clock.advance(1000);
  await clock.idle();
  assert.equal(runs.length, 3);
});
