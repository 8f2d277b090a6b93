/** Calls and notices between threads, and the barrier that releases the memory of replaced documents. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { problemText } from '../src/base/error-message.ts';
import { createTraffic } from '../src/edge/http/traffic.ts';
import { Refusal } from '../src/protocol/refusals.ts';
import { createPeer } from '../src/server/threads/rpc.ts';
import { createLocalChannels } from './support/local-channels.ts';

type Served = {
  double(value: number): number;
  later(value: number): Promise<number>;
  joined(...parts: string[]): string;
  fail(): void;
  refuse(): void;
  note(what: string): void;
};

/** A peer that asks, what has been noted, and every message that it has received. */
function connected({ gathers = false } = {}) {
  const [near, far] = createLocalChannels();
  const noted: string[] = [];
  const served: Served = {
    double: (value) => 2 * value,
    later: async (value) => value,
    joined: (...parts) => parts.join(),
    fail() {
      throw new TypeError('a bug over there');
    },
    refuse() {
      throw new Refusal('service_not_ready', { problem: 'gone' });
    },
    note: (what) => noted.push(what),
  };
  const server = createPeer(far, served, { gathers });
  return { peer: createPeer<Served>(near, {}, { gathers }), server, noted, ...near };
}

test('every call is answered, with the result or with the problem and its stack', async () => {
  const { peer } = connected();
  const results = [peer.call('double', 2), peer.call('later', 5), peer.call('joined', 'a', 'b')];
  assert.deepEqual(await Promise.all(results), [4, 5, 'a,b']);
  const problem = await peer.call('fail').catch((cause: unknown) => cause);
  assert.equal((problem as Error).message, 'a bug over there');
  assert.match(problemText(problem), /TypeError: a bug over there at /);
  await assert.rejects(peer.call('refuse'), {
    refusal: 'service_not_ready',
    details: { problem: 'gone' },
  });
});

test('a call of an unknown procedure is answered too', async () => {
  const { peer } = connected();
  const unknown = peer as unknown as { call(name: string): Promise<void> };
  await assert.rejects(unknown.call('toString'), /There is no procedure toString/);
});

test('what a turn says leaves in one message at its end, in order, and the answers in one as soon as they are given', async () => {
  const { peer, noted, received } = connected({ gathers: true });
  const calls = [peer.call('double', 1), peer.call('later', 3), peer.call('fail')];
  peer.notify('note', 'after');
  assert.deepEqual(noted, []);
  const [double, later, failed] = await Promise.allSettled(calls);
  assert.deepEqual(
    [double, later].map((result) => result?.status === 'fulfilled' && result.value),
    [2, 3],
  );
  assert.equal(failed?.status, 'rejected');
  assert.deepEqual(noted, ['after']);
  assert.deepEqual(
    received.map(([said, returned, failures]) => [said, returned, failures.length]),
    [
      [[], [1, 2], 2],
      [[], [2, 3], 0],
    ],
  );
});

test('a peer that is silenced answers nothing more, but still says what it says itself', async () => {
  const { peer, server, received, noted } = connected({ gathers: true });
  void peer.call('later', 1);
  void peer.call('double', 1);
  server.silence();
  peer.notify('note', 'heard');
  for (let turn = 0; turn < 3; turn += 1) await new Promise(setImmediate);
  assert.deepEqual(received, []);
  assert.deepEqual(noted, ['heard']);
});

test('a barrier waits for the answers begun before it, and for no others', async () => {
  const traffic = createTraffic();
  const passed: string[] = [];
  traffic.arrived();
  traffic.arrived();
  const early = traffic.begun();
  const first = traffic.barrier().then(() => passed.push('first'));
  const late = traffic.begun();
  const second = traffic.barrier().then(() => passed.push('second'));
  await new Promise(setImmediate);
  assert.deepEqual(passed, []);
  traffic.read(late);
  await new Promise(setImmediate);
  assert.deepEqual(passed, [], 'an older answer is still being made');
  traffic.read(early);
  await Promise.all([first, second]);
  traffic.left();
  traffic.left();
  await traffic.idle();
  await traffic.barrier();
});

test('idle waits for requests whose answer has not begun', async () => {
  const traffic = createTraffic();
  traffic.arrived();
  let isIdle = false;
  const idle = traffic.idle().then(() => (isIdle = true));
  await new Promise(setImmediate);
  assert.equal(isIdle, false);
  traffic.left();
  await idle;
});
