/** Webhooks [events-5]: the audit log is posted as it grows, in order and without omissions. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { loadConfig } from '../src/server/config/load.ts';
import type { Environment } from '../src/server/config/options.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR, MINUTE, testClock } from './support/clock.ts';
import { networkFolder } from './support/folders.ts';
import { indexesOf, invites, numbers } from './support/logged-events.ts';
import { untilMetric } from './support/metrics.ts';
import { get, operate } from './support/requests.ts';
import { startReceiver, type WebhookReceiver } from './support/webhook-receiver.ts';

for (const threads of ['1', '2']) {
  suite(`a webhook, with ${threads === '1' ? 'one thread' : 'several threads'}`, () => {
    test('gets what happens from now on, each entry once and in order, and each request is signed', async () => {
      await using house = await openHouse();
      await using before = await house.start();
      await invites(before, 2);
      await before.stop();
      await using hook = await house.receiver();
      await using na = await house.start({ MESH_WEBHOOKS: hook.url, MESH_THREADS: threads });
      await invites(na, 1);
      await hook.until(3);
      await operate(na, '/admin/invite', { count: 300 });
      await invites(na, 3);
      await hook.until(306);
      assert.deepEqual(indexesOf(hook.events), numbers(3, 306));
      assert.deepEqual([hook.refused, hook.posted], [[], 304]);
    });
  });
}

test('a webhook begins where the setting says, and reads a long log in limited requests', async () => {
  await using house = await openHouse();
  await using before = await house.start();
  const roles = Array.from({ length: 64 }, (_, index) => `role:${index}-${'x'.repeat(100)}`);
  await operate(before, '/admin/invite', { count: 20, roles });
  await operate(before, '/admin/invite', { count: 130 });
  await before.stop();
  await using hook = await house.receiver();
  await using _na = await house.start({ MESH_WEBHOOKS: hook.url, MESH_WEBHOOK_AFTER: '0' });
  const size = 150;
  await hook.until(size);
  assert.deepEqual(indexesOf(hook.events), numbers(1, size));
  assert.deepEqual(hook.refused, []);
  assert.ok(hook.requests >= 2, `${hook.requests} requests`);
});

test('a webhook that is new after the end of the log begins at its end', async () => {
  await using house = await openHouse();
  await using hook = await house.receiver();
  await using na = await house.start({ MESH_WEBHOOKS: hook.url, MESH_WEBHOOK_AFTER: '1000000' });
  await invites(na, 2);
  await hook.until(2);
  assert.deepEqual(indexesOf(hook.events), [1, 2]);
});

test('over stops, starts and outages of the receiver, nothing is lost or omitted', async () => {
  await using house = await openHouse();
  await using hook = await house.receiver();
  let na = await house.start({ MESH_WEBHOOKS: hook.url });
  await using _last = { [Symbol.asyncDispose]: () => na.stop() };
  await invites(na, 3);
  await hook.until(3);
  na = await na.restart();
  await invites(na, 2);
  hook.behavior = (_request, answer) => answer.writeHead(500).end();
  await invites(na, 2);
  na = await na.restart();
  await invites(na, 2);
  hook.behavior = null;
  na = await na.restart();
  await invites(na, 1);
  await hook.until(10);
  assert.deepEqual(indexesOf(hook.events), numbers(1, 10));
  assert.deepEqual(hook.refused, []);
});

test('a webhook that is removed is forgotten, and begins at the end when it comes back', async () => {
  await using house = await openHouse();
  await using hook = await house.receiver();
  await using other = await house.receiver();
  const both = { MESH_WEBHOOKS: ` ${hook.url}  ${other.url} ` };
  await using first = await house.start(both);
  await invites(first, 1);
  await Promise.all([hook.until(1), other.until(1)]);
  await first.stop();
  await using second = await house.start({ MESH_WEBHOOKS: other.url });
  await invites(second, 2);
  await other.until(3);
  assert.match((await get(second, '/metrics')).text, /^mesh_na_subjects\{kind="webhook"\} 1$/m);
  await second.stop();
  await using third = await house.start(both);
  await invites(third, 1);
  await other.until(4);
  while (hook.requests < 2) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.deepEqual(indexesOf(other.events), [1, 2, 3, 4]);
  assert.deepEqual(hook.refused, ['gap'], 'it says that two are missing');
});

test('an endpoint that never answers delays neither commands, nor other webhooks, nor a stop', async () => {
  await using house = await openHouse();
  await using silent = await house.receiver();
  silent.behavior = () => undefined;
  await using hook = await house.receiver();
  await using na = await house.start({ MESH_WEBHOOKS: `${silent.url} ${hook.url}` });
  await invites(na, 30);
  await hook.until(30);
  // What is unanswered at a stop is posted again.
  await untilMetric(na, `mesh_na_webhook_delivered_events_total{host="${hook.host}"} 30`);
  assert.equal(silent.requests, 1, 'one request is under way at a time');
  await na.stop();
  silent.behavior = null;
  await using again = await na.restart();
  await silent.until(30);
  assert.deepEqual(indexesOf(silent.events), numbers(1, 30));
  assert.equal(hook.posted, 30);
  assert.ok(again.logLines.length > 0);
});

test('failures are counted and shown only by hostname, logged once, and tried again', async () => {
  await using house = await openHouse();
  await using hook = await house.receiver();
  hook.behavior = (_request, answer) => answer.writeHead(503).end('token=not-for-logs');
  await using na = await house.start({ MESH_WEBHOOKS: hook.url });
  await invites(na, 2);
  await untilMetric(na, `mesh_na_webhook_lag_entries{host="${hook.host}"} 2`);
  while (!na.logLines.join('').includes('cannot be posted')) await get(na, '/healthz');
  na.clock.advance(20 * MINUTE);
  await untilMetric(na, `mesh_na_webhook_lag_seconds{host="${hook.host}"} 1200`);
  await untilMetric(na, 'mesh_na_posture_finding{rule="webhooks"} 1');
  na.clock.advance(24 * HOUR);
  await untilMetric(na, 'mesh_na_posture_finding{rule="webhooks"} 2');
  hook.behavior = null;
  await hook.until(2);
  const failures = new RegExp(
    `^mesh_na_webhook_failures_total\\{host="${hook.host}"\\} [1-9]`,
    'm',
  );
  assert.match((await get(na, '/metrics')).text, failures);
  await untilMetric(na, `mesh_na_webhook_delivered_events_total{host="${hook.host}"} 2`);
  await untilMetric(na, `mesh_na_webhook_lag_entries{host="${hook.host}"} 0`);
  await untilMetric(na, `mesh_na_webhook_lag_seconds{host="${hook.host}"} 0`);
  await untilMetric(na, 'mesh_na_posture_finding{rule="webhooks"} 0');
  const log = na.logLines.filter((text) => text.includes('mesh.webhook')).join('');
  const lines = log
    .split('\n')
    .map((text) =>
      text.replace(/^\S+ /, '').replace(/after [1-9]\d* failures/, 'after N failures'),
    );
  assert.deepEqual(lines, [
    `INFO mesh.webhook Posting events after 0 to ${hook.host}`,
    `WARNING mesh.webhook Events cannot be posted to ${hook.host}: it answered 503; they are kept and retried`,
    `INFO mesh.webhook ${hook.host} accepts events again after N failures`,
    '',
  ]);
  const shown = [...na.logLines, (await get(na, '/metrics')).text].join('');
  assert.doesNotMatch(shown, /not-for-logs|\/in\?/);
});

test('a private address is not connected to unless that is allowed, and the reason is given', async () => {
  await using house = await openHouse();
  await using hook = await house.receiver();
  const url = hook.url.replace('http://127.0.0.1', 'https://localhost');
  await using na = await house.start({ MESH_WEBHOOKS: url, MESH_WEBHOOK_PRIVATE: '0' });
  await invites(na, 1);
  await untilMetric(
    na,
    `mesh_na_webhook_failures_total{host="${hook.host.replace('127.0.0.1', 'localhost')}"} 1`,
  );
  assert.match(
    na.logLines.join(''),
    /cannot be posted to localhost:\d+: its name resolves to a private/,
  );
  assert.equal(hook.requests, 0);
});

interface House extends AsyncDisposable {
  start(environment?: Environment): Promise<TestAuthority>;
  receiver(): Promise<WebhookReceiver>;
}

/** One network whose authority is started more than once. */
async function openHouse(): Promise<House> {
  const folder = networkFolder('alpha');
  const clock = testClock();
  const { publicKey } = loadConfig({ dataDir: folder.path }, {}, clock.now());
  return {
    start: ({ MESH_THREADS: threads = '1', ...environment } = {}) =>
      startTestAuthority({
        dataDir: folder.path,
        clock,
        flags: { threads },
        environment: { MESH_WEBHOOK_PRIVATE: '1', ...environment },
      }),
    receiver: () => startReceiver({ authorityKey: publicKey, now: clock.now }),
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}
