import assert from 'node:assert/strict';
import { describe, simulate } from './simulate.ts';

/** Of each kind; `npm run simulate` plays more. */
export const HISTORIES = 1000;

/** Other histories each time; a finding says how to have it again. */
export async function assertHolds(clocks: 'right' | 'wrong'): Promise<void> {
  const seed = Date.now() % 2 ** 31;
  const finding = await simulate({ histories: HISTORIES, seed, clocks });
  assert.ok(finding === null, finding === null ? '' : describe(finding));
}
