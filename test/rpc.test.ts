/** Calls between threads, and the barrier that releases the memory of replaced documents. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTraffic } from '../src/edge/http/traffic.ts';
import { answerCall, createRpcCaller, type RpcAnswer } from '../src/server/threads/rpc.ts';

type Served = {
  double(value: number): Promise<number>;
  fail(): void;
};

const PROCEDURES: Served = {
  double: async (value) => 2 * value,
  fail() {
    throw new TypeError('a bug over there');
  },
};

test('every call is answered, with the result or with the problem and its stack', async () => {
  const caller = createRpcCaller<Served>((call) => {
    void answerCall(PROCEDURES, structuredClone(call), (answer) =>
      caller.take(structuredClone(answer)),
    );
  });
  assert.deepEqual(
    await Promise.all([caller.call('double', 2), caller.call('double', 5)]),
    [4, 10],
  );
  await assert.rejects(caller.call('fail'), /TypeError: a bug over there at /);
});

test('a call of an unknown procedure is answered too', async () => {
  const answers: RpcAnswer[] = [];
  const call = { type: 'call', id: 7, name: 'toString', argument: null } as const;
  await answerCall(PROCEDURES, call, (answer) => answers.push(answer));
  assert.deepEqual(
    answers.map(({ type, id }) => [type, id]),
    [['threw', 7]],
  );
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
