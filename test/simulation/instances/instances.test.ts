/** A short form of `instances.deep.test.ts`. */
import { test } from 'node:test';
import { assertHolds } from '../assert-holds.ts';

test('20 histories of three instances lose nothing and show nothing outdated', () =>
  assertHolds(20, '--instances'));
