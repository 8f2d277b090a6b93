/**
 * Random histories of three instances whose machines stop, hang, and cannot reach each other or the database, which may lose
 * its end: what was acknowledged is stored, nothing is done twice, no list is older than what was acknowledged before it was
 * asked, and none takes over a database that lacks what it shows.
 */
import { test } from 'node:test';
import { assertHolds } from '../assert-holds.ts';

test('2000 histories of three instances lose nothing and show nothing that is outdated', () =>
  assertHolds(2000, '--instances'));
