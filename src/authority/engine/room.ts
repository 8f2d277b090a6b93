/**
 * Whether there is room for what newcomers add: invites, joins and first registrations of agents. The rest of a
 * disk that is nearly full is left to those who are enrolled, and to revocations [core-4-2-1].
 */
import { Refusal } from '../../base/refusal.ts';
import type { Authority } from './authority.ts';

export function hasRoom({ hostStatus }: Pick<Authority, 'hostStatus'>): boolean {
  const { diskFree, minFree } = hostStatus();
  return diskFree === null || diskFree >= minFree;
}

/** Throws `insufficient_storage`. */
export function assertRoom(na: Pick<Authority, 'hostStatus'>): void {
  if (!hasRoom(na)) throw new Refusal('insufficient_storage');
}
