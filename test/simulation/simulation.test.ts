/**
 * A few random histories of each kind: frequent failures show up here immediately, the rest in `*.deep.test.ts`, which
 * begin with the same histories.
 */
import { test } from 'node:test';
import { assertHolds } from './assert-holds.ts';

test('histories under correct clocks end as the specification says', () =>
  assertHolds(30, '--clocks', 'right'));

test('histories under clocks that are set forward and back do so as well', () =>
  assertHolds(20, '--clocks', 'wrong'));

test('histories in which the authority key is often replaced do so, too', () =>
  assertHolds(10, '--successions', '15'));

test('histories of three instances lose nothing and show nothing outdated', () =>
  assertHolds(30, '--instances'));
