/**
 * Like `simulation.deep.test.ts`, while clocks are set forward and back; in a separate file so that the two run in
 * parallel.
 */
import { test } from 'node:test';
import { assertHolds } from './assert-holds.ts';

test('500 histories under wrong clocks end as the specification says', () =>
  assertHolds(500, '--clocks', 'wrong'));
