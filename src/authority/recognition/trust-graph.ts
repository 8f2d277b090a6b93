/**
 * A copy of the recognition index's treaties in arrays. This makes searches over all treaties fast, and allows them to
 * run in slices, because the copy does not change when a treaty does.
 */
import { lastInstantInForce } from '../../../machines/recognition-treaty.ts';
import type { Edge, RecognitionIndex } from './recognition-index.ts';

export interface TrustGraph {
  /** The version of the index that was copied. */
  readonly version: number;
  readonly sovereignCount: number;
  /** The treaties; the position in this list is the number of a treaty. */
  readonly edges: readonly Edge[];
  /** The number of the treaty with this id. */
  readonly numberOf: ReadonlyMap<string, number>;
  /** Until when each is in force as of now. */
  readonly lasting: Lasting;
  /** The numbers of the sovereigns that each treaty leads from and to. */
  readonly from: Int32Array;
  readonly to: Int32Array;
  readonly outgoing: Adjacency;
  readonly incoming: Adjacency;
}

/** The treaties of sovereign `s` are `edges[start[s]]` up to, but not including, `edges[start[s + 1]]`. */
export interface Adjacency {
  readonly start: Int32Array;
  readonly edges: Int32Array;
}

/** The number of treaties that one slice of work visits, which takes about a millisecond. */
export const EDGES_PER_SLICE = 2048;

/** Copies the index; returns null if it changed during the copy. */
export function* copyGraph(index: RecognitionIndex): Generator<void, TrustGraph | null> {
  const version = index.version();
  const sovereignCount = index.sovereignCount();
  const count = index.edges().length;
  const edges: Edge[] = [];
  const numberOf = new Map<string, number>();
  const lasting = new Float64Array(count);
  const from = new Int32Array(count);
  const to = new Int32Array(count);
  while (edges.length < count) {
    const end = Math.min(count, edges.length + EDGES_PER_SLICE);
    for (const edge of index.edges().slice(edges.length, end)) {
      const { treaty } = edge;
      const isRevoked = treaty.revokedAt !== null;
      lasting[edges.length] = isRevoked ? Number.NEGATIVE_INFINITY : lastInstantInForce(treaty);
      numberOf.set(edge.treatyId, edges.length);
      from[edges.length] = edge.from.number;
      to[edges.length] = edge.to.number;
      edges.push({ treatyId: edge.treatyId, from: edge.from, to: edge.to, treaty });
    }
    yield;
    if (index.version() !== version) return null;
  }
  const outgoing = adjacency(from, sovereignCount);
  yield;
  const incoming = adjacency(to, sovereignCount);
  yield;
  if (index.version() !== version) return null;
  return { version, sovereignCount, edges, numberOf, lasting, from, to, outgoing, incoming };
}

/** Sorts the edges by the sovereign at one of their ends, using a counting sort. */
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

/** The last instant at which each treaty is in force, by number; -Infinity if it ended in another way. */
export type Lasting = Float64Array;

export const UNREACHED = -1;

/** A search over the treaties that remain in force at least until a given instant. */
export interface Reach {
  readonly graph: TrustGraph;
  readonly lasting: Lasting;
  readonly until: number;
}

/** The number of hops from `start` to each sovereign; paths do not continue beyond `end`. */
export function hopsFrom(reach: Reach, start: number, end: number | null): Int32Array {
  const { outgoing, to } = reach.graph;
  return measure(reach, outgoing, to, start, end);
}

/** The number of hops from each sovereign to `end`; paths through `start` do not count. */
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
