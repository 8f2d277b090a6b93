/** The treaties as seen by a trust question: now or at an earlier time, and possibly without some of them. */
import type { Treaty } from '../../../machines/recognition-treaty.ts';
import { isLifecycleActive } from './lifecycle.ts';
import type { Edge } from './recognition-index.ts';

/** A treaty in the index, such as an `Edge`. */
type HeldTreaty = Pick<Edge, 'treatyId' | 'treaty'>;

export interface TrustView {
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** Why the treaty is not part of the view; null if it is. */
  absence(held: HeldTreaty): 'left_out' | 'not_issued' | null;
  /** The treaty as it was at the time of the view. */
  treatyOf(held: HeldTreaty): Treaty;
  isInForce(held: HeldTreaty): boolean;
}

/** A view of all treaties as they are now. */
export function presentView(at: number): TrustView {
  return {
    at,
    absence: () => null,
    treatyOf: ({ treaty }) => treaty,
    isInForce: ({ treaty }) => isLifecycleActive(treaty, at),
  };
}

/** A view of the present, or of the earlier time `asOf`, without the named treaties. */
export function trustView(
  now: number,
  asOf: number | null,
  without: ReadonlySet<string>,
): TrustView {
  if (asOf === null && without.size === 0) return presentView(now);
  const at = asOf ?? now;
  const absence = ({ treatyId, treaty }: HeldTreaty) => {
    if (without.has(treatyId)) return 'left_out';
    return asOf !== null && treaty.issuedAt > asOf ? 'not_issued' : null;
  };
  const treatyOf = ({ treaty }: HeldTreaty) =>
    asOf === null ? treaty : beforeLaterRevocation(treaty, asOf);
  return {
    at,
    absence,
    treatyOf,
    isInForce: (held) => isLifecycleActive(treatyOf(held), at) && absence(held) === null,
  };
}

/**
 * The treaty without a revocation that happened later. For earlier revocations, the latest reason is shown, because
 * records do not say when a reason changed.
 */
function beforeLaterRevocation(treaty: Treaty, at: number): Treaty {
  const isLater = treaty.revokedAt !== null && treaty.revokedAt > at;
  return isLater ? { ...treaty, revokedAt: null, revocationReason: null } : treaty;
}
