import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { modulePath } from '../support/project.ts';

const SIMULATE = modulePath('test/simulation/main.ts');

/**
 * Plays other histories each time, as `npm run simulate` does with these arguments; what it finds says how to have it
 * again. In a process of its own: the test runner follows every promise of its own one, which takes as long as the
 * histories.
 */
export async function assertHolds(histories: number, ...args: readonly string[]): Promise<void> {
  const child = fork(SIMULATE, ['--histories', String(histories), ...args], { silent: true });
  const { stdout, stderr } = child;
  assert.ok(stdout !== null && stderr !== null);
  const [[code], said, failed] = await Promise.all([
    once(child, 'close'),
    text(stdout),
    text(stderr),
  ]);
  assert.equal(code, 0, said + failed);
  assert.match(said, new RegExp(`^${histories} histories hold$`, 'm'));
}
