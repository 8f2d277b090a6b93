/**
 * Finds the smallest set of treaties that would have to end to break one sovereign's trust in another [core-6-3-1]. By
 * Menger's theorem, its size equals the number of paths that share no treaty, so the search looks for these paths with
 * Dinic's algorithm, in which each treaty has a capacity of one path.
 */
import { EDGES_PER_SLICE, type Reach, type TrustGraph, UNREACHED } from './trust-graph.ts';

const NONE = -1;

/** The number of arcs that one slice visits, which takes about a millisecond. */
const ARCS_PER_SLICE = 16_384;

/**
 * The residual graph, which contains the arcs that further paths may use. Each treaty in force has two arcs: 2n leads
 * along the treaty while no path uses it, and 2n + 1 leads back along it while a path does, so that the path can be
 * rerouted.
 */
interface Residual {
  /** `edges[n]` is the number of the treaty to which arcs 2n and 2n + 1 belong. */
  readonly edges: readonly number[];
  /** 1 if the arc may be used. */
  readonly isOpen: Uint8Array;
  /** The sovereign that an arc leads to. */
  readonly far: Int32Array;
  /** The arcs that leave a sovereign, as a linked list: the first one, and for each arc the next one. */
  readonly first: Int32Array;
  readonly next: Int32Array;
}

/**
 * The numbers of the treaties. If there are several smallest sets, returns the one nearest to the source. Null if the
 * set has more than `most` treaties.
 */
export function* smallestCut(
  { graph, lasting, until }: Reach,
  source: number,
  target: number,
  most: number,
): Generator<void, number[] | null> {
  const inForce: number[] = [];
  for (let edge = 0; edge < lasting.length; edge += 1) {
    if ((lasting[edge] as number) >= until) inForce.push(edge);
  }
  yield;
  const residual = yield* residualOf(graph, inForce);
  let found = 0;
  for (;;) {
    const levels = yield* levelsOf(residual, source, target);
    if (levels[target] === UNREACHED) return edgesOutOf(graph, inForce, levels);
    found += yield* addPaths(residual, levels, source, target, most + 1 - found);
    if (found > most) return null;
  }
}

function* residualOf(graph: TrustGraph, edges: readonly number[]): Generator<void, Residual> {
  const isOpen = new Uint8Array(2 * edges.length);
  const far = new Int32Array(2 * edges.length);
  const next = new Int32Array(2 * edges.length);
  const first = new Int32Array(graph.sovereignCount).fill(NONE);
  for (let n = 0; n < edges.length; n += 1) {
    const edge = edges[n] as number;
    const from = graph.from[edge] as number;
    const to = graph.to[edge] as number;
    isOpen[2 * n] = 1;
    far[2 * n] = to;
    next[2 * n] = first[from] as number;
    first[from] = 2 * n;
    far[2 * n + 1] = from;
    next[2 * n + 1] = first[to] as number;
    first[to] = 2 * n + 1;
    if (n % (4 * EDGES_PER_SLICE) === 0) yield;
  }
  return { edges, isOpen, far, first, next };
}

/**
 * The number of arcs from the source to each sovereign. Stops at the target; if that cannot be reached, covers everything
 * that can.
 */
function* levelsOf(
  { isOpen, far, first, next }: Residual,
  source: number,
  target: number,
): Generator<void, Int32Array> {
  const levels = new Int32Array(first.length).fill(UNREACHED);
  const queue = new Int32Array(first.length);
  levels[source] = 0;
  queue[0] = source;
  let queued = 1;
  let visited = 0;
  for (let head = 0; head < queued; head += 1) {
    const sovereign = queue[head] as number;
    const level = (levels[sovereign] as number) + 1;
    for (let arc = first[sovereign] as number; arc !== NONE; arc = next[arc] as number) {
      const reached = far[arc] as number;
      visited += 1;
      if (visited % ARCS_PER_SLICE === 0) yield;
      if (isOpen[arc] === 0 || levels[reached] !== UNREACHED) continue;
      levels[reached] = level;
      if (reached === target) return levels;
      queue[queued] = reached;
      queued += 1;
    }
  }
  return levels;
}

/** Adds shortest paths until there are no more, but at most `most`; returns how many were added. */
function* addPaths(
  { isOpen, far, first, next }: Residual,
  levels: Int32Array,
  source: number,
  target: number,
  most: number,
): Generator<void, number> {
  /** The next arc to try for each sovereign; the arcs before it are dead ends in this round. */
  const untried = first.slice();
  /** The arcs of the path so far. */
  const path: number[] = [];
  let found = 0;
  let at = source;
  for (let visited = 1; found < most; visited += 1) {
    if (visited % ARCS_PER_SLICE === 0) yield;
    if (at === target) {
      for (const arc of path) {
        isOpen[arc] = 0;
        isOpen[arc ^ 1] = 1;
      }
      path.length = 0;
      found += 1;
      at = source;
    }
    const arc = untried[at] as number;
    if (arc === NONE) {
      const last = path.pop();
      if (last === undefined) break;
      at = far[last ^ 1] as number;
      untried[at] = next[last] as number;
      continue;
    }
    const reached = far[arc] as number;
    if (isOpen[arc] === 1 && levels[reached] === (levels[at] as number) + 1) {
      path.push(arc);
      at = reached;
    } else {
      untried[at] = next[arc] as number;
    }
  }
  return found;
}

/** The treaties that lead from sovereigns the source still reaches to ones it does not. */
function edgesOutOf(
  { from, to }: TrustGraph,
  inForce: readonly number[],
  levels: Int32Array,
): number[] {
  return inForce.filter(
    (edge) =>
      levels[from[edge] as number] !== UNREACHED && levels[to[edge] as number] === UNREACHED,
  );
}
