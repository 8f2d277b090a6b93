/** What happens to a request that another instance must answer: held, sent, sent again, or given up. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Attempt, createForwarding, type Forwarded } from '../src/edge/forward/forwarder.ts';
import { passedHeaders, passing } from '../src/edge/http/passing.ts';
import { createRouter, isAnsweredElsewhere } from '../src/edge/request/route.ts';
import { ROUTES } from '../src/edge/routes/table.ts';
import { SCRIPT, STYLE } from '../src/pages/assets.ts';

const ANSWERED: Attempt<string> = { kind: 'answered', answer: 'done' };
const NOT_BEGUN: Attempt<string> = { kind: 'not begun' };
const LOST: Attempt<string> = { kind: 'lost' };

/** A request that is sent to targets whose attempts are given, and what was sent. */
function requestTo(
  attempts: Readonly<Record<string, Attempt<string>>>,
  given: { isRead?: boolean; isRepeatable?: boolean; bytes?: number } = {},
) {
  const { isRead = false, isRepeatable = isRead, bytes = 0 } = given;
  const sent: string[] = [];
  const request: Forwarded<string, string> = {
    isRead,
    isRepeatable,
    bytes,
    isGone: () => false,
    async send(target, isRepeat) {
      sent.push(isRepeat ? `${target} again` : target);
      return attempts[target] ?? NOT_BEGUN;
    },
  };
  return { request, sent };
}

function setUp(holdMs = 3000) {
  let now = 0;
  const forwarding = createForwarding<string>({ holdMs, elapsed: () => now });
  return {
    ...forwarding,
    pass: (milliseconds: number) => {
      now += milliseconds;
    },
  };
}

test('a request is held while nobody is active, and goes to the instance that becomes so', async () => {
  const { forward, turnTo } = setUp();
  const { request, sent } = requestTo({ b: ANSWERED });
  const answer = forward(request);
  turnTo('a');
  await new Promise(setImmediate);
  assert.deepEqual(sent, ['a'], 'a stops, and has not begun it');
  turnTo('b');
  assert.equal(await answer, 'done');
  assert.deepEqual(sent, ['a', 'b'], 'it was never begun, so it is no repetition');
});

test('after the longest hold nothing was done, and a request is refused at once if none may be held', async () => {
  const { forward, pass } = setUp();
  const { request, sent } = requestTo({});
  const answer = forward(request);
  pass(3000);
  assert.equal(await answer, 'authority_unavailable');
  assert.equal(await setUp(0).forward(request), 'authority_unavailable');
  assert.deepEqual(sent, []);
});

test('a lost request is sent again if that is safe, and otherwise its outcome is unknown', async () => {
  const lost = { a: LOST, b: ANSWERED };
  for (const [what, given, expected, sent] of [
    ['a read', { isRead: true }, 'done', ['a', 'b again']],
    ['a command whose answer is kept', { isRepeatable: true }, 'done', ['a', 'b again']],
    ['any other command', {}, 'outcome_unknown', ['a']],
  ] as const) {
    const { forward, turnTo } = setUp();
    const made = requestTo(lost, given);
    turnTo('a');
    const answer = forward(made.request);
    await new Promise(setImmediate);
    turnTo('b');
    assert.equal(await answer, expected, what);
    assert.deepEqual(made.sent, sent, what);
  }
});

test('what may be sent twice changes nothing and spends no nonce, or gets its first answer', () => {
  for (const [method, isSigned, keepsAnswer, expected] of [
    ['GET', false, false, true],
    ['HEAD', false, false, true],
    ['GET', true, false, false],
    ['POST', true, true, true],
    ['POST', true, false, false],
    ['POST', false, false, false],
  ] as const) {
    const given = { method, isSigned, keepsAnswer, target: '/', headers: [], body: null };
    const request = { ...given, isLasting: false, noted: () => null };
    const { isRepeatable } = passing(request, { res: { close() {} }, aborted: false });
    assert.equal(isRepeatable, expected, `${method} ${isSigned} ${keepsAnswer}`);
  }
});

test('a command that was lost, and then held too long, may have been carried out, and a read was not', async () => {
  for (const [isRead, expected] of [
    [false, 'outcome_unknown'],
    [true, 'authority_unavailable'],
  ] as const) {
    const { forward, turnTo, pass } = setUp();
    const { request } = requestTo({ a: LOST }, { isRead, isRepeatable: true });
    turnTo('a');
    const answer = forward(request);
    await new Promise(setImmediate);
    turnTo(null);
    pass(3000);
    assert.equal(await answer, expected);
  }
});

test('no more than 4,096 requests and 64 MiB are held, and a client that has left is not waited for', async () => {
  const { forward, pass } = setUp();
  const held = Array.from({ length: 4096 }, () => forward(requestTo({}).request));
  assert.equal(await forward(requestTo({}).request), 'authority_unavailable');
  pass(3000);
  assert.deepEqual([...new Set(await Promise.all(held))], ['authority_unavailable']);
  const large = setUp();
  const [first, second] = [40, 40].map((mib) =>
    large.forward(requestTo({}, { bytes: mib * 1024 ** 2 }).request),
  );
  assert.equal(await second, 'authority_unavailable');
  large.turnTo('a');
  large.pass(3000);
  assert.equal(await first, 'authority_unavailable');
  const { request } = requestTo({});
  assert.equal(await setUp().forward({ ...request, isGone: () => true }), 'authority_unavailable');
});

test('bodies that are on their way count as well, until they are answered', async () => {
  const { forward, turnTo } = setUp();
  turnTo('a');
  const bytes = 40 * 1024 ** 2;
  let answer = (_attempt: Attempt<string>): void => undefined;
  const slow = new Promise<Attempt<string>>((resolve) => {
    answer = resolve;
  });
  const first = forward({ ...requestTo({}, { bytes }).request, send: () => slow });
  const { request, sent } = requestTo({ a: ANSWERED }, { bytes });
  assert.equal(await forward(request), 'authority_unavailable');
  assert.deepEqual(sent, []);
  answer(ANSWERED);
  assert.equal(await first, 'done');
  assert.equal(await forward(request), 'done');
});

test('what is no valid HTTP is refused at once', async () => {
  const { forward, turnTo } = setUp();
  turnTo('a');
  const { request, sent } = requestTo({ a: { kind: 'invalid' } });
  assert.equal(await forward(request), 'bad_request');
  assert.deepEqual(sent, ['a']);
});

test('headers of one connection, and those that only instances may send, are not passed on', () => {
  const lines = [
    ['host', 'na.example'],
    ['connection', 'close'],
    ['transfer-encoding', 'chunked'],
    ['x-mesh-forwarded-for', '203.0.113.9'],
    ['x-mesh-base-url', 'https://elsewhere.example'],
    ['x-twice', 'a'],
    ['x-twice', 'b'],
    ['x-control', 'a\x7f'],
    ['x-utf-8', 'é→'],
  ].flat();
  assert.deepEqual(
    passedHeaders(lines, { remoteAddr: '192.0.2.1', baseUrl: 'https://na.example' }),
    [
      ['x-mesh-forwarded-for', '192.0.2.1'],
      ['x-mesh-base-url', 'https://na.example'],
      ['host', 'na.example'],
      ['x-twice', 'a'],
      ['x-twice', 'b'],
      ['x-utf-8', Buffer.from('é→').toString('latin1')],
    ].flat(),
  );
});

test('a standby answers probes, references and the files of its own pages, and forwards what it does not know', () => {
  const match = createRouter(ROUTES);
  const isForwarded = (path: string) => {
    const found = match('GET', path);
    assert.ok(typeof found === 'object' && 'route' in found, path);
    const edge = { instanceStatus: { isActive: () => false } } as never;
    return isAnsweredElsewhere(edge, { ...found, isRefused: false } as never);
  };
  const own = ['/healthz', '/readyz', '/health', '/metrics', '/api-reference', '/cli-reference'];
  for (const path of [...own, '/swagger.json', STYLE.path, SCRIPT.path]) {
    assert.equal(isForwarded(path), false, path);
  }
  const others = [STYLE, SCRIPT].map(({ path }) => path.replace(/[0-9a-f]{32}/, '0'.repeat(32)));
  for (const path of [...others, '/', '/crl', '/dashboard']) {
    assert.equal(isForwarded(path), true, path);
  }
});
