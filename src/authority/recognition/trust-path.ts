/**
 * Finds the trust path between two sovereigns [core-6-3], defined as the result of a breadth-first search that tries
 * edges in (from, to, treaty_id) order and visits each sovereign once.
 */

import type { Treaty } from '../../../machines/recognition-treaty.ts';
import type { EdgeRow, TrustPath } from '../../protocol/rows/graph.ts';
import { isLifecycleActive } from './lifecycle.ts';
import { edgeRow } from './recognition-graph.ts';
import type { Edge, RecognitionIndex, Sovereign } from './recognition-index.ts';

export function findTrustPath(
  index: RecognitionIndex,
  from: string,
  to: string,
  now: number,
): TrustPath {
  return findTrustPathIn(presentView(now), index, from, to);
}

export function findTrustPathIn(
  view: TrustView,
  index: RecognitionIndex,
  from: string,
  to: string,
): TrustPath {
  const source = index.sovereign(from);
  const target = index.sovereign(to);
  if (source === undefined || target === undefined || source === target) {
    return { from, to, trusted: false, reason: 'no_active_treaty_path', path: [], hop_count: 0 };
  }
  const path = shortestPath(index, source, target, view);
  if (path !== null) {
    const rows = path.map((edge) => rowIn(view, edge));
    const reason = 'active_treaty_path';
    return { from, to, trusted: true, reason, path: rows, hop_count: rows.length };
  }
  const revoked = source.outgoing.find(
    (edge) =>
      edge.to === target && view.treatyOf(edge).revokedAt !== null && view.absence(edge) === null,
  );
  return {
    from,
    to,
    trusted: false,
    reason: revoked === undefined ? 'no_active_treaty_path' : 'direct_treaty_revoked',
    path: revoked === undefined ? [] : [rowIn(view, revoked)],
    hop_count: 0,
  };
}

function rowIn(view: TrustView, edge: Edge): EdgeRow {
  return edgeRow({ ...edge, treaty: view.treatyOf(edge) }, view.at);
}

function shortestPath(
  index: RecognitionIndex,
  source: Sovereign,
  target: Sovereign,
  view: TrustView,
): Edge[] | null {
  /** The treaty by which the search arrived at each sovereign, by number. */
  const arrivals = new Array<Edge | undefined>(index.sovereignCount()).fill(undefined);
  const queue = [source];
  // The queue grows meanwhile.
  for (const from of queue) {
    for (const edge of from.outgoing) {
      const { to } = edge;
      if (to === source || arrivals[to.number] !== undefined || !view.isInForce(edge)) continue;
      arrivals[to.number] = edge;
      if (to === target) return pathTo(target, arrivals);
      queue.push(to);
    }
  }
  return null;
}

function pathTo(target: Sovereign, arrivals: readonly (Edge | undefined)[]): Edge[] {
  const path: Edge[] = [];
  for (let edge = arrivals[target.number]; edge !== undefined; edge = arrivals[edge.from.number]) {
    path.push(edge);
  }
  return path.reverse();
}

/** A treaty in the index, such as an `Edge`. */
type HeldTreaty = Pick<Edge, 'treatyId' | 'treaty'>;

/** The treaties as seen by a trust question: now or at an earlier time, and possibly without some of them. */
export interface TrustView {
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** Whether it has all treaties as they are now. */
  readonly isPresent: boolean;
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
    isPresent: true,
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
    isPresent: false,
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
