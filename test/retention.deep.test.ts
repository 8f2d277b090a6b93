/** The data that a fleet leaves behind over the years. */
import { test } from 'node:test';
import { renewWeekly, YEAR_WEEKS } from './support/renewing-fleet.ts';

test('a fleet that renews weekly for five years takes no more room than its living nodes', () =>
  renewWeekly(5 * YEAR_WEEKS));
