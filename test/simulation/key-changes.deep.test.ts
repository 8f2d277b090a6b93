/**
 * Histories in which the key of the authority is replaced again and again, as planned and after thefts, and rolled back:
 * everything is signed by the keys of its time, and whoever pinned an earlier key reaches the current one.
 */
import { test } from 'node:test';
import { assertHolds } from './assert-holds.ts';

const OFTEN = ['--successions', '15'];

test('80 histories of changes of the key end as the specification has it', () =>
  assertHolds(80, ...OFTEN));

test('50 histories of changes of the key do so while clocks are set forward and back', () =>
  assertHolds(50, ...OFTEN, '--clocks', 'wrong'));

test('50 histories of changes of the key do so while other processes take over', () =>
  assertHolds(50, ...OFTEN, '--take-overs'));
