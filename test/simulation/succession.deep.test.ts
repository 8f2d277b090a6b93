/**
 * The histories of `simulation.deep.test.ts`, but each start continues with a state that another process kept up to
 * date by looking at the disk after arbitrary steps: it must behave exactly like a state read from disk.
 */
import { test } from 'node:test';
import { assertHolds } from './assert-holds.ts';

for (const clocks of ['right', 'wrong']) {
  test(`100 histories of takeovers under clocks that are ${clocks} end as the specification says`, () =>
    assertHolds(100, '--clocks', clocks, '--take-overs'));
}
