/** What a command does when the authority limits its requests. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { inWords } from '../src/base/duration.ts';
import { patienceFor } from '../src/cli/connection/server.ts';
import { EXIT, outcomeOf } from '../src/cli/kernel/errors.ts';
import { AuthorityError } from '../src/client/authority-error.ts';
import { withRetries } from '../src/client/retry.ts';
import { startTestAuthority } from './support/authority.ts';
import { REAL_TIME, SECOND } from './support/clock.ts';
import { runCommand } from './support/commands.ts';
import { networkFolder } from './support/folders.ts';
import { startHostileAuthority } from './support/hostile-authority.ts';
import { joinedNode, newKey, operate } from './support/requests.ts';
import { until } from './support/until.ts';

for (const [seconds, words] of [
  [0, '0 seconds'],
  [1, '1 second'],
  [59.2, '1 minute'],
  [65, '1 minute 5 seconds'],
  [7322, '2 hours 2 minutes 2 seconds'],
  [-5, '0 seconds'],
] as const) {
  test(`${seconds} seconds are ${words}`, () => assert.equal(inWords(seconds), words));
}

test('a limit of the authority is shown with its wait in words', async () => {
  const environment = { MESH_RATE_LIMIT_ADMIN: '1/3600' };
  await using na = await startTestAuthority({ clock: REAL_TIME, environment });
  assert.equal((await operate(na, '/admin/invite')).status < 300, true);
  const args = ['invite', 'create', '--url', na.url, '--data-dir', na.dataDir];
  for (const [more, hint] of [
    [[], ', or use --wait'],
    [['--wait'], ', which is longer than --wait allows'],
  ] as const) {
    const { code, stderr } = await runCommand([...args, ...more]);
    assert.equal(code, EXIT.refused);
    const [, shown] =
      /429 rate_limit_exceeded.*; try again in (?:1 hour|59 minutes(?: \d+ seconds?)?)(.*)$/m.exec(
        stderr,
      ) ?? [];
    assert.equal(shown, hint);
  }
});

test('a wait in vain is reported', async () => {
  let waited = 0;
  const limited = new AuthorityError('Too many', {
    status: 429,
    code: 'rate_limit_exceeded',
    retryAfter: 200,
  });
  const options = {
    url: '',
    patienceMs: 600_000,
    async wait(ms: number) {
      waited += ms;
    },
  };
  const refused = await withRetries(options, { repeatable: true }, {}, () =>
    Promise.reject(limited),
  ).catch(outcomeOf);
  assert.ok(waited > 400_000 && waited < 600_000, `${waited} ms`);
  assert.equal(
    refused.message,
    `The authority refused: Too many (429 rate_limit_exceeded); try again in 3 minutes 20 seconds; already waited ${inWords(waited / 1000)}`,
  );
});

test('one deadline holds for all requests of a command, and is longer for more items', async () => {
  let now = 0;
  const options = {
    url: '',
    patienceMs: patienceFor(0, () => now),
    async wait(ms: number) {
      now += ms;
    },
  };
  const facts = { status: 429, code: 'rate_limit_exceeded', retryAfter: 240 };
  const answers = [1, 2, 3].map((number) => {
    let isAsked = false;
    return withRetries(options, { repeatable: true }, {}, async () => {
      if (isAsked) return number;
      isAsked = true;
      throw new AuthorityError('Too many', facts);
    });
  });
  const [first, second, third] = await Promise.allSettled(answers);
  assert.deepEqual(
    [first, second].map((ended) => ended?.status),
    ['fulfilled', 'fulfilled'],
  );
  assert.equal(third?.status, 'rejected');
  assert.ok(now > 480_000 && now < 600_000, `${now} ms`);
  assert.equal(patienceFor(500, () => 0)(), 2_600_000);
});

test('a bulk change goes on as fast as the authority allows', async () => {
  // The invites leave four requests, and the next ones come with the time of the test.
  await using na = await startTestAuthority({ environment: { MESH_RATE_LIMIT_ADMIN: '10/2' } });
  for (const _ of Array(6)) await joinedNode(na);
  const place = ['--url', na.url, '--data-dir', na.dataDir];
  const revoke = ['certificate', 'revoke', '--status', 'active', '--yes-revoke', '6'];
  const revoking = runCommand([...revoke, ...place]);
  await until(() => na.logLines.some((line) => line.includes('POST /admin/revoke 429')));
  na.clock.advance(2 * SECOND);
  const { code, stdout, stderr } = await revoking;
  assert.equal(code, EXIT.done, stderr);
  assert.match(stdout, /^6 certificates revoked\.$/m);
  assert.match(stderr, /^mesh-na: The authority is limiting requests; retrying in \d seconds?\n$/);
});

test('a bulk change that fails says what it has done, as one object with --json', async () => {
  const environment = { MESH_RATE_LIMIT_ADMIN: '3/3600' };
  await using na = await startTestAuthority({ clock: REAL_TIME, environment });
  for (const _ of Array(2)) await joinedNode(na);
  const place = ['--url', na.url, '--data-dir', na.dataDir];
  const revoke = ['certificate', 'revoke', '--status', 'active', '--yes-revoke', '2', '--json'];
  const { code, stdout, stderr } = await runCommand([...revoke, ...place]);
  assert.equal(code, EXIT.refused);
  const done = JSON.parse(stdout);
  assert.deepEqual([done.count, done.revoked_cert_ids.length, done.revoked_count], [1, 1, 1]);
  assert.equal(JSON.parse(stderr).error.code, 'rate_limit_exceeded');
  const text = await runCommand([
    'certificate',
    'revoke',
    '--status',
    'active',
    '--yes-revoke',
    '1',
    ...place,
  ]);
  assert.match(text.stderr, /^mesh-na: Revoked 0 of 1 certificates before this failed\n/);
});

test('a silent authority is asked no longer with a profile than without', async () => {
  await using folder = networkFolder('silent');
  await using server = await startHostileAuthority();
  const keyFile = join(folder.path, 'keys', 'operator-privileged.key');
  const connect = ['connect', server.url, '--authority-key', newKey().publicKey, '--offline'];
  const environment = { XDG_CONFIG_HOME: folder.path, MESH_DATA_DIR: join(folder.path, 'none') };
  await runCommand([...connect, '--key-file', keyFile], environment);
  server.answers = { 'GET /authority-keys': null };
  const { code, stderr } = await runCommand(['invite', 'list'], environment);
  assert.equal(code, EXIT.unreachable, stderr);
  assert.match(stderr, /^mesh-na: No answer from the authority at \S+ \(ECONNRESET\)\n {2}\S/);
  assert.deepEqual(
    server.asked.map(({ route }) => route),
    Array(3).fill('GET /authority-keys'),
  );
});

test('--wait waits for a restored authority, and sends a new request to it', async () => {
  const resent: boolean[] = [];
  const waits: number[] = [];
  const options = {
    url: '',
    patienceMs: 600_000,
    wait: async (ms: number) => void waits.push(ms),
  };
  const answer = await withRetries(
    options,
    { repeatable: false, answerIsKept: true },
    {},
    async (isResent) => {
      resent.push(isResent);
      if (resent.length > 1) return 'done';
      const facts = { status: 503, code: 'restored_recently', retryAfter: 299 };
      throw new AuthorityError('The state was restored', facts);
    },
  );
  assert.equal(answer, 'done');
  assert.deepEqual(resent, [false, false]);
  assert.ok(waits.length === 1 && (waits[0] ?? 0) >= 299_000);
});

test('--wait waits no longer than specified, and reports it', async () => {
  const limited = { error: { code: 'rate_limit_exceeded', message: 'Too many', details: {} } };
  const headers = { 'retry-after': '1' };
  await using server = await startHostileAuthority();
  const busy = () => new Response(JSON.stringify(limited), { status: 429, headers });
  server.answers = { 'GET /agents': [busy(), busy(), busy(), { count: 3, capability: null }] };
  const { code, stdout, stderr } = await runCommand([
    'agent',
    'list',
    '--wait',
    '--url',
    server.url,
  ]);
  assert.equal(code, EXIT.done, stderr);
  assert.equal(stdout, '3 agents registered.\n');
  const said = stderr.trimEnd().split('\n');
  assert.equal(said.length, 3);
  assert.match(
    said[0] ?? '',
    /^mesh-na: The authority is limiting requests; retrying in 2 seconds$/,
  );
});
