/**
 * Histories in which the authority's key is replaced repeatedly, as planned or after thefts, and rolled back:
 * everything is signed by the keys of its time, and a client that pinned an earlier key reaches the current one.
 */
import { test } from 'node:test';
import { assertHolds } from './assert-holds.ts';

const OFTEN = ['--successions', '15'];

test('50 histories of key changes end as the specification says', () => assertHolds(50, ...OFTEN));

test('30 histories of key changes do so while clocks are set forward and back', () =>
  assertHolds(30, ...OFTEN, '--clocks', 'wrong'));

test('30 histories of key changes do so while other processes take over', () =>
  assertHolds(30, ...OFTEN, '--take-overs'));
