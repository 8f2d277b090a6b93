/**
 * Checks whether there is enough disk space for newcomers: invites, joins and first registrations of agents. On a
 * nearly full disk, the remaining space is reserved for enrolled nodes and for revocations [core-4-2-1].
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
