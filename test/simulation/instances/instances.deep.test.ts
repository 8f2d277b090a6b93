/**
 * Random histories of three instances whose machines stop, hang, and cannot reach each other or the database, which may lose
 * its end, while the key of the authority is replaced: what was acknowledged is stored, nothing is done twice, no document is
 * older than what was acknowledged before it was asked, whoever pinned the root key can verify every list, no key takes over
 * that a linked instance lacks, none takes over a database that lacks what it shows, and no heartbeat counts that was not made,
 * or counts twice.
 */
import { test } from 'node:test';
import { assertHolds } from '../assert-holds.ts';

test('600 histories of three instances lose nothing and show nothing outdated', () =>
  assertHolds(600, '--instances'));
