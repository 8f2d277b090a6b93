/** Periodic work: what happens when a run fails, and when the process stops during a run. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createBackground } from '../src/server/lifecycle/background.ts';

test('runs of a background job never overlap, a failure is logged, and each success is reported', async () => {
  const lines: string[] = [];
  const succeeded: string[] = [];
  const logger = {
    write: (level: string, area: string, message: string) =>
      lines.push(`${level} ${area} ${message}`),
    request: () => undefined,
  };
  const background = createBackground(logger, (job) => succeeded.push(job));
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
  const background = createBackground(
    { write: () => undefined, request: () => undefined },
    () => undefined,
  );
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
