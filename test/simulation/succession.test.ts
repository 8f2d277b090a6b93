/**
 * The histories of `simulation.test.ts`, in which each start goes on with a state that another process has kept up
 * to date, looking at the disk after any steps: nobody can tell it from one that was read.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describe, simulate } from './simulate.ts';

const HISTORIES = 150;

for (const clocks of ['right', 'wrong'] as const) {
  test(`${HISTORIES} histories of take-overs under clocks that are ${clocks} end as the specification has it`, async () => {
    const seed = Date.now() % 2 ** 31;
    const finding = await simulate({ histories: HISTORIES, seed, clocks, takesOver: true });
    assert.ok(finding === null, finding === null ? '' : describe(finding));
  });
}
