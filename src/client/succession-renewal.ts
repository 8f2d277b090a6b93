import type { AuthoritySuccession } from '../protocol/records/authority-succession.ts';
import { instantOf } from '../protocol/records/record.ts';
import { renewalWithin, windowOfOverlap } from '../protocol/records/renewal-window.ts';

export interface RenewalPlan {
  /** Milliseconds over which the nodes of a network spread their renewals when there is no overlap. */
  readonly spreadMs: number;
  now(): number;
  /** From 0 to 1. */
  random(): number;
}

/**
 * By when to renew a certificate that the current authority key has not signed [authority-keys-7-3], in milliseconds
 * since the epoch. Every node of the network learns about the change at the same time, and many may return at the same
 * time, so each has a time of its own.
 */
export function renewalAfter(
  change: AuthoritySuccession | null,
  { certId, due }: { readonly certId: string; readonly due: number },
  { spreadMs, now, random }: RenewalPlan,
): number {
  if (change === null || change.kind === 'compromise') return now() + random() * spreadMs;
  const since = instantOf(change.activates_at);
  const window = windowOfOverlap(certId, since, instantOf(change.overlap_until));
  const at = renewalWithin(due, window);
  // A node that was away at its time is not in a hurry: what the earlier key has signed still counts.
  return at > now() ? at : renewalWithin(due, { ...window, from: now(), place: random() });
}
