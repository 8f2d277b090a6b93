/** A restored state refuses whatever was revoked before, also after the backup. */
import { test } from 'node:test';
import fc from 'fast-check';
import { HISTORY, playAndRestore } from './restoring/histories.ts';
import { WITHIN_FOLDERS } from './restoring/places.ts';

const HISTORIES = 30;

test(`${HISTORIES} random histories are restored without un-revoking anything`, () =>
  fc.assert(
    fc.asyncProperty(HISTORY, (history) => playAndRestore(history, WITHIN_FOLDERS)),
    { numRuns: HISTORIES },
  ));
