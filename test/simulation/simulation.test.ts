/**
 * Random histories of operators, nodes and disks against the real authority: everything it has acknowledged
 * holds, and nothing else is ever visible (see model/ for the rules).
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describe, simulate } from './simulate.ts';

/** `npm run simulate` plays more. */
const HISTORIES = 300;
/** A new seed each day finds what the last one did not; a failing one is in the message. */
const seed = Math.floor(Date.now() / 86_400_000);

for (const clocks of ['right', 'wrong'] as const) {
  test(`${HISTORIES} histories under clocks that are ${clocks} end as the specification has it`, async () => {
    const finding = await simulate({ histories: HISTORIES, seed, clocks });
    assert.ok(finding === null, finding === null ? '' : describe(finding));
  });
}
