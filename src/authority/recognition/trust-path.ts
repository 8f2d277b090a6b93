/**
 * Finds the trust path between two sovereigns [core-6-3], defined as the result of a breadth-first search that tries
 * edges in (from, to, treaty_id) order and visits each sovereign once.
 *
 * Of all shortest paths, this search finds the first one when paths are compared hop by hop. It is therefore enough to
 * determine how far sovereigns are from the target, and then to walk from the source, always following the first edge
 * that leads one step closer. The distances come from two searches that meet in the middle, and therefore visit only a
 * small part of a large graph.
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

/** Searches run one after another, so they can share these. */
const fromSource = createDistances();
const toTarget = createDistances();

function shortestPath(
  index: RecognitionIndex,
  source: Sovereign,
  target: Sovereign,
  view: TrustView,
): Edge[] | null {
  fromSource.begin(index.sovereignCount());
  toTarget.begin(index.sovereignCount());
  fromSource.note(source.number, 0);
  toTarget.note(target.number, 0);
  const met = meet(source, target, view);
  if (met === null) return null;
  noteShortestPaths(met, view);
  const path: Edge[] = [];
  for (let at = source, left = met.length - 1; at !== target; left -= 1) {
    const edge = at.outgoing.find(
      (candidate) => toTarget.of(candidate.to.number) === left && view.isInForce(candidate),
    );
    if (edge === undefined) throw new Error('A shortest path was measured but cannot be walked');
    path.push(edge);
    at = edge.to;
  }
  return path;
}

interface Meeting {
  readonly length: number;
  /** The depth of the search from the source, and the sovereigns where it met the other search. */
  readonly reach: number;
  readonly middle: readonly Sovereign[];
}

/** Searches from both ends until the searches meet, always advancing the smaller side by one complete step. */
function meet(source: Sovereign, target: Sovereign, view: TrustView): Meeting | null {
  let forward = [source];
  let backward = [target];
  let reach = 0;
  let back = 0;
  while (forward.length > 0 && backward.length > 0) {
    if (forward.length <= backward.length) {
      reach += 1;
      forward = stepForward(forward, reach, view);
    } else {
      back += 1;
      backward = stepBackward(backward, back, view);
    }
    const middle =
      forward.length <= backward.length
        ? forward.filter((each) => toTarget.of(each.number) === back)
        : backward.filter((each) => fromSource.of(each.number) === reach);
    if (middle.length > 0) return { length: reach + back, reach, middle };
  }
  return null;
}

function stepForward(from: Sovereign[], distance: number, view: TrustView) {
  const next: Sovereign[] = [];
  for (const { outgoing } of from) {
    for (const edge of outgoing) {
      const { to } = edge;
      if (fromSource.of(to.number) !== -1 || !view.isInForce(edge)) continue;
      fromSource.note(to.number, distance);
      next.push(to);
    }
  }
  return next;
}

function stepBackward(from: Sovereign[], distance: number, view: TrustView) {
  const next: Sovereign[] = [];
  for (const { incoming } of from) {
    for (const edge of incoming) {
      const { from: before } = edge;
      if (toTarget.of(before.number) !== -1 || !view.isInForce(edge)) continue;
      toTarget.note(before.number, distance);
      next.push(before);
    }
  }
  return next;
}

/** Records the distance of every sovereign between source and middle that lies on a shortest path. */
function noteShortestPaths({ length, reach, middle }: Meeting, view: TrustView): void {
  let layer = middle;
  for (let distance = reach - 1; distance >= 0; distance -= 1) {
    const before: Sovereign[] = [];
    for (const { incoming } of layer) {
      for (const edge of incoming) {
        const { from } = edge;
        if (fromSource.of(from.number) !== distance) continue;
        if (toTarget.of(from.number) !== -1 || !view.isInForce(edge)) continue;
        toTarget.note(from.number, length - distance);
        before.push(from);
      }
    }
    layer = before;
  }
}

/**
 * Distances of numbered items from the start of a search. Reusable for consecutive searches: beginning a search does not
 * clear the array, and usually allocates nothing.
 */
function createDistances() {
  /** Distances are stored as `base` plus the distance; values from earlier searches are smaller than `base`. */
  let stored = new Float64Array(0);
  let base = 1;
  return {
    /** Clears all distances; the numbers of items are below `count` from now on. */
    begin(count: number) {
      base += stored.length;
      if (count > stored.length) stored = new Float64Array(2 * count);
    },
    note(item: number, distance: number) {
      stored[item] = base + distance;
    },
    /** -1 if no distance is recorded. */
    of(item: number): number {
      const distance = (stored[item] ?? 0) - base;
      return distance < 0 ? -1 : distance;
    },
  };
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
