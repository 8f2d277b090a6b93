/**
 * A copy of the treaties of the recognition index, in arrays: searches over all of them are then fast, and
 * may be cut into slices, because the copy stays as it is when a treaty changes.
 */
import type { Edge, RecognitionIndex } from './recognition-index.ts';

export interface TrustGraph {
  /** Version of the index that it is a copy of. */
  readonly version: number;
  readonly sovereignCount: number;
  /** The treaties, by number from here on. */
  readonly edges: readonly Edge[];
  /** Numbers of the sovereigns that a treaty leads from and to. */
  readonly from: Int32Array;
  readonly to: Int32Array;
  readonly outgoing: Adjacency;
  readonly incoming: Adjacency;
}

/** The treaties of sovereign `s` are `edges[start[s]]` until before `edges[start[s + 1]]`. */
export interface Adjacency {
  readonly start: Int32Array;
  readonly edges: Int32Array;
}

/** Treaties that one slice of work looks at: about a millisecond. */
export const EDGES_PER_SLICE = 2048;

/** Copies the index; null when it changed meanwhile. */
export function* copyGraph(index: RecognitionIndex): Generator<void, TrustGraph | null> {
  const version = index.version();
  const sovereignCount = index.sovereignCount();
  const count = index.edges().length;
  const edges: Edge[] = [];
  const from = new Int32Array(count);
  const to = new Int32Array(count);
  while (edges.length < count) {
    const end = Math.min(count, edges.length + EDGES_PER_SLICE);
    for (const edge of index.edges().slice(edges.length, end)) {
      from[edges.length] = edge.from.number;
      to[edges.length] = edge.to.number;
      edges.push({ treatyId: edge.treatyId, from: edge.from, to: edge.to, treaty: edge.treaty });
    }
    yield;
    if (index.version() !== version) return null;
  }
  const outgoing = adjacency(from, sovereignCount);
  yield;
  const incoming = adjacency(to, sovereignCount);
  yield;
  if (index.version() !== version) return null;
  return { version, sovereignCount, edges, from, to, outgoing, incoming };
}

/** Sorts the edges by the sovereign at one of their ends, by counting. */
function adjacency(ends: Int32Array, sovereignCount: number): Adjacency {
  const start = new Int32Array(sovereignCount + 1);
  for (const sovereign of ends) start[sovereign + 1] = (start[sovereign + 1] as number) + 1;
  for (let s = 0; s < sovereignCount; s += 1) {
    start[s + 1] = (start[s + 1] as number) + (start[s] as number);
  }
  const next = start.slice();
  const edges = new Int32Array(ends.length);
  ends.forEach((sovereign, edge) => {
    const at = next[sovereign] as number;
    edges[at] = edge;
    next[sovereign] = at + 1;
  });
  return { start, edges };
}

/** The last instant at which each treaty is in force, by number; -Infinity where it is not. */
export type Lasting = Float64Array;

export const UNREACHED = -1;

/** A search over the treaties that are in force until an instant at least. */
export interface Reach {
  readonly graph: TrustGraph;
  readonly lasting: Lasting;
  readonly until: number;
}

/** Hops from the start to each sovereign; nothing leads on from `end`. */
export function hopsFrom(reach: Reach, start: number, end: number | null): Int32Array {
  const { outgoing, to } = reach.graph;
  return measure(reach, outgoing, to, start, end);
}

/** Hops from each sovereign to the end; nothing that leads through `start` counts. */
export function hopsTo(reach: Reach, end: number, start: number | null): Int32Array {
  const { incoming, from } = reach.graph;
  return measure(reach, incoming, from, end, start);
}

function measure(
  { lasting, until }: Reach,
  { start, edges }: Adjacency,
  farEnd: Int32Array,
  origin: number,
  barrier: number | null,
): Int32Array {
  const sovereignCount = start.length - 1;
  const hops = new Int32Array(sovereignCount).fill(UNREACHED);
  const queue = new Int32Array(sovereignCount);
  hops[origin] = 0;
  queue[0] = origin;
  let queued = 1;
  for (let head = 0; head < queued; head += 1) {
    const sovereign = queue[head] as number;
    if (sovereign === barrier) continue;
    const next = (hops[sovereign] as number) + 1;
    const last = start[sovereign + 1] as number;
    for (let at = start[sovereign] as number; at < last; at += 1) {
      const edge = edges[at] as number;
      const far = farEnd[edge] as number;
      if (hops[far] !== UNREACHED || (lasting[edge] as number) < until) continue;
      hops[far] = next;
      queue[queued] = far;
      queued += 1;
    }
  }
  return hops;
}
