/**
 * The histories of `simulation.deep.test.ts`, in which each start goes on with a state that another process has kept up
 * to date, looking at the disk after any steps: nobody can tell it from one that was read.
 */
import { test } from 'node:test';
import { assertHolds } from './assert-holds.ts';

for (const clocks of ['right', 'wrong']) {
  test(`150 histories of takeovers under clocks that are ${clocks} end as the specification says`, () =>
    assertHolds(150, '--clocks', clocks, '--take-overs'));
}
