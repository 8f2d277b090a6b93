/**
 * Random histories of operators, nodes and disks against the real authority: everything that it acknowledged remains
 * true, and nothing else is ever visible (see model/ for the rules).
 */
import { test } from 'node:test';
import { assertHolds } from './assert-holds.ts';

test('500 histories under correct clocks end as the specification says', () =>
  assertHolds(500, '--clocks', 'right'));
