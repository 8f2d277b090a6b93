import type { AuthoritySuccession } from '../protocol/records/authority-succession.ts';
import { instantOf } from '../protocol/records/record.ts';
import { SHARE_OF_OVERLAP } from '../protocol/records/renewal-window.ts';

export interface RenewalPlan {
  /** Milliseconds over which the nodes of a network spread their renewals when there is no overlap. */
  readonly spreadMs: number;
  now(): number;
  /** From 0 to 1. */
  random(): number;
}

/**
 * By when to renew a certificate that the current authority key has not signed [authority-keys-7-3], in milliseconds
 * since the epoch. The time is random, because every node of the network learns about the change at once.
 */
export function renewalAfter(
  change: AuthoritySuccession | null,
  { spreadMs, now, random }: RenewalPlan,
): number {
  const overlapMs = change === null ? 0 : instantOf(change.overlap_until) - now();
  const windowMs = overlapMs > 0 ? SHARE_OF_OVERLAP * overlapMs : spreadMs;
  return now() + random() * windowMs;
}
