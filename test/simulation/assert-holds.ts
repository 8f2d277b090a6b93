import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { modulePath } from '../support/project.ts';

const SIMULATE = modulePath('test/simulation/main.ts');
const SEED = '1';

/**
 * Plays random histories, as `npx tsx test/simulation/main.ts` does with these arguments, but always the same ones, so that a failure
 * is due to what was changed. It prints how to reproduce it. This runs in a separate process because the test runner
 * tracks every promise in its own, which takes as long as the histories themselves.
 */
export async function assertHolds(histories: number, ...args: readonly string[]): Promise<void> {
  const child = fork(SIMULATE, ['--histories', `${histories}`, '--seed', SEED, ...args], {
    silent: true,
  });
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
