/** The recognition graph for drawing and exploring, built from the published Connectome document. */
import { visitInSlices } from '../base/slices.ts';
import type { BlastRadiusRow, Connectome, EdgeRow } from '../protocol/rows/graph.ts';

export type EdgeState = EdgeRow['lifecycle_state'];

/** From most to least important. */
export const EDGE_STATES = ['active', 'expiring_soon', 'expired', 'revoked', 'replaced'] as const;

export interface GraphNode {
  readonly index: number;
  readonly id: string;
  readonly isOwn: boolean;
  readonly outgoing: EdgeRow[];
  readonly incoming: EdgeRow[];
  /** Attestations of this sovereign that an imported feed revokes. */
  readonly revocations: BlastRadiusRow[];
  /** Links that start or end here. */
  degree: number;
}

/** All treaties from one sovereign to another. */
export interface GraphLink {
  readonly from: GraphNode;
  readonly to: GraphNode;
  readonly treaties: EdgeRow[];
  /** The state of the most important treaty. */
  state: EdgeState;
  /** Whether there are treaties in the other direction, too. */
  isMutual: boolean;
}

/** The part of the Connectome document that pages show. */
export type GraphDocument = Omit<Connectome, 'active_treaties'>;

export interface GraphModel {
  readonly document: GraphDocument;
  /** Sorted by name. */
  readonly nodes: readonly GraphNode[];
  readonly links: readonly GraphLink[];
  /** The name of this authority's sovereign. */
  readonly ownName: string;
  treaty(id: string): EdgeRow | undefined;
  node(id: string): GraphNode | undefined;
}

/** Takes a few milliseconds. */
const ROWS_PER_SLICE = 1000;

export function* graphModel(document: GraphDocument, ownName: string): Generator<void, GraphModel> {
  const nodes = new Map<string, GraphNode>();
  const links = new Map<string, GraphLink>();
  const treaties = new Map<string, EdgeRow>();
  yield* visitInSlices(document.sovereigns, ROWS_PER_SLICE, ({ sovereign_id: id }) => {
    nodes.set(id, newNode(id, nodes.size, ownName));
  });
  yield* visitInSlices(document.recognition_edges, ROWS_PER_SLICE, (edge) => {
    treaties.set(edge.treaty_id, edge);
    const [from, to] = [nodes.get(edge.from), nodes.get(edge.to)];
    if (from !== undefined && to !== undefined) addTreaty(links, from, to, edge);
  });
  yield* visitInSlices(links.values(), ROWS_PER_SLICE, (link) => {
    link.isMutual = link.from !== link.to && links.has(keyOf(link.to, link.from));
  });
  yield* visitInSlices(document.revocation_blast_radius, ROWS_PER_SLICE, (row) => {
    nodes.get(row.issuer_sovereign_id)?.revocations.push(row);
  });
  return {
    document,
    nodes: [...nodes.values()],
    links: [...links.values()],
    ownName,
    treaty: (id) => treaties.get(id),
    node: (id) => nodes.get(id),
  };
}

function newNode(id: string, index: number, ownName: string): GraphNode {
  const isOwn = id === ownName;
  return { index, id, isOwn, outgoing: [], incoming: [], revocations: [], degree: 0 };
}

function addTreaty(
  links: Map<string, GraphLink>,
  from: GraphNode,
  to: GraphNode,
  edge: EdgeRow,
): void {
  from.outgoing.push(edge);
  to.incoming.push(edge);
  const key = keyOf(from, to);
  const known = links.get(key);
  const state = edge.lifecycle_state;
  if (known === undefined) {
    links.set(key, { from, to, treaties: [edge], state, isMutual: false });
    from.degree += 1;
    if (to !== from) to.degree += 1;
  } else {
    known.treaties.push(edge);
    if (rank(state) < rank(known.state)) known.state = state;
  }
}

function keyOf(from: GraphNode, to: GraphNode): string {
  return `${from.index} ${to.index}`;
}

function rank(state: EdgeState): number {
  return EDGE_STATES.indexOf(state);
}
