/**
 * The smallest set of treaties whose end cuts the trust of one sovereign in another [core-6-3-1]. By the
 * theorem of Menger its size is the number of paths that share no treaty, so the search looks for those:
 * Dinic's algorithm, where every treaty carries one path.
 */
import { EDGES_PER_SLICE, type Reach, type TrustGraph, UNREACHED } from './trust-graph.ts';

const NONE = -1;

/** Arcs that one slice visits: about a millisecond. */
const ARCS_PER_SLICE = 16_384;

/**
 * What further paths may use. Each treaty in force is two arcs: 2n leads along it while no path uses it, and
 * 2n + 1 leads back along it while one does, which gives that path up for another.
 */
interface Residual {
  /** The number of the treaty of arcs 2n and 2n + 1 is `edges[n]`. */
  readonly edges: readonly number[];
  /** 1 for an arc that may be used. */
  readonly isOpen: Uint8Array;
  /** The sovereign that an arc leads to. */
  readonly far: Int32Array;
  /** The arcs out of a sovereign: the first one, and for each arc the next one. */
  readonly first: Int32Array;
  readonly next: Int32Array;
}

/**
 * The numbers of the treaties: of all smallest sets the one nearest to the source. Null when it has more than
 * `most` treaties.
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

/** Arcs from the source to each sovereign, as far as the target; to all that are reached if it is not. */
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

/** Adds shortest paths until there are no more, at most this many; returns their number. */
function* addPaths(
  { isOpen, far, first, next }: Residual,
  levels: Int32Array,
  source: number,
  target: number,
  most: number,
): Generator<void, number> {
  /** The arc of each sovereign to try next: those before it lead nowhere in this round. */
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

/** The treaties that lead out of what the source still reaches. */
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
