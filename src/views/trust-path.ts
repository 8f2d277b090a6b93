/**
 * The trust path between two sovereigns (wire rules 6.3): what a breadth-first search would find that
 * tries edges in (from, to, treaty_id) order and visits each sovereign once.
 *
 * Such a search finds, of all shortest paths, the first in the order of its hops. So it is enough to
 * learn which sovereigns are how far from the target, and then to walk from the source, taking at each
 * step the first edge that comes one nearer. The distances come from two searches that meet in the
 * middle, and so touch a small part of a large graph.
 */
import { isLifecycleActive } from './lifecycle.ts';
import { type EdgeRow, edgeRow } from './recognition-graph.ts';
import type { Edge, RecognitionIndex, Sovereign } from './recognition-index.ts';

export type TrustPath = {
  readonly from: string;
  readonly to: string;
  readonly trusted: boolean;
  readonly reason: 'active_treaty_path' | 'direct_treaty_revoked' | 'no_active_treaty_path';
  readonly path: readonly EdgeRow[];
  readonly hop_count: number;
};

export function findTrustPath(
  index: RecognitionIndex,
  from: string,
  to: string,
  now: number,
): TrustPath {
  const source = index.sovereign(from);
  const target = index.sovereign(to);
  if (source === undefined || target === undefined || source === target) {
    return { from, to, trusted: false, reason: 'no_active_treaty_path', path: [], hop_count: 0 };
  }
  const path = shortestPath(source, target, now);
  if (path !== null) {
    const rows = path.map((edge) => edgeRow(edge, now));
    const reason = 'active_treaty_path';
    return { from, to, trusted: true, reason, path: rows, hop_count: rows.length };
  }
  const revoked = source.outgoing.find(
    (edge) => edge.to === target && edge.treaty.revokedAt !== null,
  );
  return {
    from,
    to,
    trusted: false,
    reason: revoked === undefined ? 'no_active_treaty_path' : 'direct_treaty_revoked',
    path: revoked === undefined ? [] : [edgeRow(revoked, now)],
    hop_count: 0,
  };
}

function shortestPath(source: Sovereign, target: Sovereign, now: number): Edge[] | null {
  const fromSource = new Map([[source, 0]]);
  const toTarget = new Map([[target, 0]]);
  const length = meet(source, target, fromSource, toTarget, now);
  if (length === null) return null;
  const onPath = sovereignsOnShortestPaths(fromSource, toTarget, length, now);
  const path: Edge[] = [];
  for (let at = source; at !== target; ) {
    const left = length - path.length - 1;
    const edge = at.outgoing.find(
      (candidate) => isActive(candidate, now) && onPath.get(candidate.to) === left,
    );
    if (edge === undefined) throw new Error('A shortest path was measured but cannot be walked');
    path.push(edge);
    at = edge.to;
  }
  return path;
}

/** Searches from both ends, the smaller side first; returns the length of the shortest path. */
function meet(
  source: Sovereign,
  target: Sovereign,
  fromSource: Map<Sovereign, number>,
  toTarget: Map<Sovereign, number>,
  now: number,
): number | null {
  let forward = [source];
  let backward = [target];
  while (forward.length > 0 && backward.length > 0) {
    const ahead = forward.length <= backward.length;
    const found = ahead
      ? expand(forward, fromSource, toTarget, 'outgoing', now)
      : expand(backward, toTarget, fromSource, 'incoming', now);
    if (found.met) return depthOf(fromSource) + depthOf(toTarget);
    if (ahead) forward = found.next;
    else backward = found.next;
  }
  return null;
}

/** Takes one whole step outwards, so that every sovereign at the new distance is known. */
function expand(
  frontier: readonly Sovereign[],
  seen: Map<Sovereign, number>,
  other: ReadonlyMap<Sovereign, number>,
  direction: 'outgoing' | 'incoming',
  now: number,
): { readonly next: Sovereign[]; readonly met: boolean } {
  const next: Sovereign[] = [];
  const distance = depthOf(seen) + 1;
  let met = false;
  for (const sovereign of frontier) {
    for (const edge of sovereign[direction]) {
      const neighbour = direction === 'outgoing' ? edge.to : edge.from;
      if (seen.has(neighbour) || !isActive(edge, now)) continue;
      seen.set(neighbour, distance);
      next.push(neighbour);
      if (other.has(neighbour)) met = true;
    }
  }
  return { next, met };
}

/** Sovereigns are added in the order of their distance, so the last one is the farthest. */
function depthOf(distances: ReadonlyMap<Sovereign, number>): number {
  let depth = 0;
  for (const distance of distances.values()) if (distance > depth) depth = distance;
  return depth;
}

/** Distance to the target of every sovereign that lies on some shortest path. */
function sovereignsOnShortestPaths(
  fromSource: ReadonlyMap<Sovereign, number>,
  toTarget: ReadonlyMap<Sovereign, number>,
  length: number,
  now: number,
): Map<Sovereign, number> {
  const onPath = new Map<Sovereign, number>();
  let layer: Sovereign[] = [];
  const reach = length - depthOf(toTarget);
  for (const [sovereign, distance] of toTarget) {
    onPath.set(sovereign, distance);
    if (fromSource.get(sovereign) === reach && distance === length - reach) layer.push(sovereign);
  }
  for (let back = reach - 1; back >= 0; back -= 1) {
    const before: Sovereign[] = [];
    for (const sovereign of layer) {
      for (const edge of sovereign.incoming) {
        if (fromSource.get(edge.from) !== back || onPath.has(edge.from)) continue;
        if (!isActive(edge, now)) continue;
        onPath.set(edge.from, length - back);
        before.push(edge.from);
      }
    }
    layer = before;
  }
  return onPath;
}

function isActive({ treaty }: Edge, now: number): boolean {
  return isLifecycleActive(treaty, now);
}
