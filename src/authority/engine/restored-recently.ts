/**
 * After a restore nobody knows which requests the lost state had accepted, so all that were signed before are refused
 * [backup-6]. The sender of a genuine one learns why, and for how long.
 */
import { Refusal } from '../../base/refusal.ts';
import { formatInstant } from '../../base/timestamp.ts';
import type { Authority } from './authority.ts';

export function assertAfterRestore(na: Authority, isGenuine: boolean, signedAt: number): void {
  const until = na.earlierRequests.restoredUntil();
  if (!isGenuine || until === null || signedAt > until) return;
  throw new Refusal('restored_recently', {
    accepts_signed_after: formatInstant(until),
    retry_after: Math.max(1, Math.floor((until - na.runtime.now()) / 1000) + 1),
  });
}

/** Until when whatever is signed now is refused; null when it is not. */
export function refusedUntil({ earlierRequests }: Authority, now: number): number | null {
  const until = earlierRequests.restoredUntil();
  return until !== null && now <= until ? until : null;
}
