/** As `simulation.test.ts`, while clocks are set forward and back; in a file of its own to run beside it. */
import { test } from 'node:test';
import { assertHolds, HISTORIES } from './assert-holds.ts';

test(`${HISTORIES} histories under clocks that are wrong end as the specification has it`, () =>
  assertHolds('wrong'));
