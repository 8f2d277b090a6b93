import type { AuthoritySuccession } from './authority-succession.ts';
import { instantOf } from './record.ts';

/** A certificate is renewed between these fractions of its lifetime. */
const FROM = 0.5;
const UNTIL = 0.75;

/** Nodes renew within this fraction of an overlap, which leaves time for those that fail at first. */
const SHARE_OF_OVERLAP = 0.75;

/** Instants are milliseconds since the epoch. */
export interface Lifetime {
  readonly issuedAt: number;
  readonly expiresAt: number;
}

/**
 * A number from 0 to 1 derived from the random id of a certificate. Work done at this position in a time window is
 * spread evenly over a fleet.
 */
export function placeOf(certId: string): number {
  const place = Number.parseInt(certId.slice(0, 8), 16) / 2 ** 32;
  return Number.isFinite(place) ? Math.min(place, 1) : 1;
}

/** When to renew the certificate. Certificates issued together are not renewed together. */
export function renewalOf(certId: string, { issuedAt, expiresAt }: Lifetime): number {
  const share = FROM + placeOf(certId) * (UNTIL - FROM);
  return issuedAt + Math.floor(share * (expiresAt - issuedAt));
}

/** A period in which nodes renew certificates that the current authority key has not signed [authority-keys-7-3]. */
interface ChangeWindow {
  /** Milliseconds since the epoch. */
  readonly from: number;
  readonly durationMs: number;
  /** From 0 to 1, of this node. */
  readonly place: number;
}

/** After a planned change of the authority's key: from when it took over until when both keys sign, for this certificate. */
export function windowOfOverlap(certId: string, since: number, overlapUntil: number): ChangeWindow {
  // Other digits than for the renewal: only late renewals are moved, and would all be moved to the end of the window.
  const place = placeOf(certId.slice(-8));
  return { from: since, durationMs: SHARE_OF_OVERLAP * (overlapUntil - since), place };
}

/** When it is due, if that is within the window, so that the change causes no renewal that is not needed. */
export function renewalWithin(due: number, { from, durationMs, place }: ChangeWindow): number {
  return due <= from + durationMs ? due : from + Math.floor(place * durationMs);
}

/** When the renewal window of every certificate with this lifetime ends. */
export function windowEnd({ issuedAt, expiresAt }: Lifetime): number {
  return issuedAt + UNTIL * (expiresAt - issuedAt);
}

interface RenewalPlan {
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
