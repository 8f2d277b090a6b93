/** The effect of a bug or a broken thread: one request fails, or the process logs why it ends. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { createBackground } from '../src/lifecycle/background.ts';
import { startArmed } from './support/armed-server.ts';
import {
  EFFECT_THROWS,
  HANDLER_THROWS,
  MANY_INVITES,
  TIMER_THROWS,
} from './support/injected-faults.ts';
import { get, operate, outcome } from './support/requests.ts';

for (const threads of ['1', '2']) {
  suite(`with ${threads} thread(s)`, () => {
    test('C3: a bug in one handler is a 500 and an ERROR line with the stack, and the service goes on', async (t) => {
      const server = await startArmed(t, threads, HANDLER_THROWS);
      const failed = await operate(server.na, '/admin/invite', MANY_INVITES);
      assert.equal(outcome(failed), '500 internal_server_error');
      assert.equal(outcome(await get(server.na, '/readyz')), '200');
      const { code, stderr } = await server.end('SIGTERM');
      assert.equal(code, 0);
      const requestId = failed.headers.get('x-request-id');
      const line = new RegExp(
        `ERROR mesh\\.http request_id=${requestId} .*injected into a handler at .*createInvites`,
      );
      assert.match(stderr, line);
    });

    test('D0: an exception behind a commit ends the process, and the log names it', async (t) => {
      const server = await startArmed(t, threads, EFFECT_THROWS);
      const policy = { policy_id: 'p', content: {} };
      await assert.rejects(operate(server.na, '/admin/policy', policy), TypeError);
      const { code, stderr } = await server.ended;
      assert.equal(code, 1);
      assert.match(
        stderr,
        fatalLine('effects of a commit: TypeError: injected behind a commit at'),
      );
    });

    test('C3: a timer that throws ends the process, and the log names it', async (t) => {
      const server = await startArmed(t, threads, TIMER_THROWS);
      const { code, stderr } = await server.ended;
      assert.equal(code, 1);
      assert.match(stderr, fatalLine('uncaught exception: TypeError: injected into a timer at'));
    });
  });
}

test('C3: a background job runs one run behind the other, logs a failure and reports each success', async () => {
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
  const job = background.start('counting', 3_600_000, async () => {
    underWay += 1;
    assert.equal(underWay, 1);
    await new Promise(setImmediate);
    underWay -= 1;
    runs += 1;
    if (runs === 2) throw new Error('the second run');
  });
  const outcomes = await Promise.allSettled([job.runNow(), job.runNow(), job.runNow()]);
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  );
  runs = 1;
  await job.attempt();
  assert.match(lines.join(), /^ERROR background counting failed: Error: the second run at /);
  assert.deepEqual(succeeded, ['counting', 'counting']);
  await background.stop();
});

test('C3: a stop of background work waits for the run under way', async () => {
  const background = createBackground(
    { write: () => undefined, request: () => undefined },
    () => undefined,
  );
  let finish = () => {};
  const job = background.start(
    'long',
    3_600_000,
    () => new Promise<void>((resolve) => (finish = resolve)),
  );
  const run = job.runNow();
  let stopped = false;
  const stopping = background.stop().then(() => (stopped = true));
  await new Promise(setImmediate);
  assert.equal(stopped, false);
  finish();
  await Promise.all([run, stopping]);
});

function fatalLine(what: string): RegExp {
  return new RegExp(`CRITICAL mesh\\.process Ending after a failure: ${what}`);
}
