import assert from 'node:assert/strict';
import { describe, simulate } from './simulate.ts';

/** Of each kind; `npm run simulate` plays more. */
export const HISTORIES = 1000;
/** A new seed each day finds what the last one did not; a failing one is in the message. */
const seed = Math.floor(Date.now() / 86_400_000);

export async function assertHolds(clocks: 'right' | 'wrong'): Promise<void> {
  const finding = await simulate({ histories: HISTORIES, seed, clocks });
  assert.ok(finding === null, finding === null ? '' : describe(finding));
}
