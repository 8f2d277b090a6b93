/** What a fleet leaves behind over the years. */
import { test } from 'node:test';
import { renewWeekly, YEAR_WEEKS } from './support/renewing-fleet.ts';

test('a fleet that renews weekly for five years is held as its living nodes are', () =>
  renewWeekly(5 * YEAR_WEEKS));
