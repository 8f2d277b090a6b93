/**
 * Random histories of three instances whose machines stop, hang, and lose contact with each other or with the database,
 * which may lose its last changes, while the authority's key is replaced. Whatever was acknowledged is stored, nothing
 * is done twice, no document is older than what was acknowledged before it was requested, every client that pinned the
 * root key can verify every list, no key takes over while a linked instance lacks it, no instance takes over a database
 * that lacks what the instance has shown, and no heartbeat counts if it was forged or counted before.
 */
import { test } from 'node:test';
import { assertHolds } from '../assert-holds.ts';

test('400 histories of three instances lose nothing and show nothing outdated', () =>
  assertHolds(400, '--instances'));
