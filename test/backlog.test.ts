/** What waits for slow viewers of live pages is bounded, for all of them together. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createBacklog, STALLED_MS } from '../src/edge/http/viewers.ts';

const MOST = 1000;

function backlogAt() {
  let now = 0;
  const closed: string[] = [];
  const backlog = createBacklog(MOST, () => now);
  return {
    backlog,
    closed,
    wait(ms: number) {
      now += ms;
    },
    socket(name: string) {
      let buffered = 0;
      const socket = {
        getBufferedAmount: () => buffered,
        close() {
          closed.push(name);
          backlog.leave(socket);
        },
      };
      return (bytes: number) => {
        buffered = bytes;
        backlog.note(socket);
      };
    },
  };
}

test('those that have been behind the longest are closed first, until the rest fits', () => {
  const { closed, socket } = backlogAt();
  const [first, second, third, fourth] = ['first', 'second', 'third', 'fourth'].map(socket);
  for (const set of [first, second, third]) set?.(300);
  first?.(0);
  first?.(300);
  assert.deepEqual(closed, []);
  // The first had caught up meanwhile, so it is behind for a shorter time than the others.
  fourth?.(500);
  assert.deepEqual(closed, ['second', 'third']);
  fourth?.(1001);
  assert.deepEqual(closed, ['second', 'third', 'first', 'fourth']);
});

test('a socket that never catches up is closed, even if it accepts a little from time to time', () => {
  const { backlog, closed, socket, wait } = backlogAt();
  const [slow, current] = ['slow', 'current'].map(socket);
  for (let waited = 0; waited < STALLED_MS; waited += 1000) {
    slow?.(500 - waited / 1000);
    current?.(100);
    wait(1000);
    current?.(0);
    backlog.endStalled();
  }
  assert.deepEqual(closed, ['slow']);
});

test('sockets that leave or catch up free their room', () => {
  const { backlog, closed, socket } = backlogAt();
  for (let i = 0; i < 100; i += 1) {
    const set = socket(String(i));
    set(900);
    set(0);
  }
  for (let i = 0; i < 100; i += 1) {
    const gone = { getBufferedAmount: () => 900, close: () => closed.push('gone') };
    backlog.note(gone);
    backlog.leave(gone);
  }
  assert.deepEqual(closed, []);
});
