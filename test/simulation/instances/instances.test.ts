/**
 * Random histories of three instances whose machines stop, hang, and cannot reach each other or the database: what was
 * acknowledged is stored, nothing is done twice, and no list is older than what was acknowledged before it was asked.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describe, simulate } from './simulate.ts';

const HISTORIES = 2000;

test(`${HISTORIES} histories of three instances lose nothing and show nothing that is outdated`, async () => {
  const seed = Date.now() % 2 ** 31;
  const finding = await simulate({ histories: HISTORIES, seed, shrinks: true });
  assert.ok(finding === null, finding === null ? '' : describe(finding));
});
