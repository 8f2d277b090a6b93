/** The recognition graph for drawing and exploring, built from the published Connectome document. */
import { visitInSlices } from '../../base/work.ts';
import type { BlastRadiusRow, Connectome, EdgeRow } from '../../protocol/rows/graph.ts';
import { LIFECYCLE_STATES } from '../../protocol/rows/recognition.ts';
import { reference } from '../ui/names.ts';

export type EdgeState = EdgeRow['lifecycle_state'];

export interface GraphNode {
  readonly index: number;
  readonly id: string;
  /** The name in lower case, for searches. */
  readonly lower: string;
  readonly isOwn: boolean;
  readonly outgoing: EdgeRow[];
  readonly incoming: EdgeRow[];
  /** Attestations of this sovereign that an imported feed revokes. */
  readonly revocations: BlastRadiusRow[];
  /** Those that start or end here. */
  readonly links: GraphLink[];
}

/** A treaty between two sovereigns of the graph. */
export interface GraphTreaty {
  readonly row: EdgeRow;
  readonly from: GraphNode;
  readonly to: GraphNode;
  /** The id in lower case, for searches. */
  readonly lower: string;
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
  /** Sorted by recognizing, then by recognized sovereign. */
  readonly treaties: readonly GraphTreaty[];
  /** The name of this authority's sovereign. */
  readonly ownName: string;
  treaty(id: string): EdgeRow | undefined;
  node(id: string): GraphNode | undefined;
  /** The sovereign that a query names: by its name, or by the digest of a name that is too long for a URL. */
  named(given: string): GraphNode | undefined;
}

/** Takes a few milliseconds. */
const ROWS_PER_SLICE = 1000;

export function* graphModel(document: GraphDocument, ownName: string): Generator<void, GraphModel> {
  const nodes = new Map<string, GraphNode>();
  const links = new Map<string, GraphLink>();
  const references = new Map<string, GraphNode>();
  const rows = new Map<string, EdgeRow>();
  const treaties: GraphTreaty[] = [];
  yield* visitInSlices(document.sovereigns, ROWS_PER_SLICE, ({ sovereign_id: id }) => {
    const node = newNode(id, nodes.size, ownName);
    nodes.set(id, node);
    const named = reference(id);
    if (named !== id) references.set(named, node);
  });
  yield* visitInSlices(document.recognition_edges, ROWS_PER_SLICE, (row) => {
    rows.set(row.treaty_id, row);
    const [from, to] = [nodes.get(row.from), nodes.get(row.to)];
    if (from === undefined || to === undefined) throw new Error('A party has no row of its own');
    treaties.push({ row, from, to, lower: row.treaty_id.toLowerCase() });
    addTreaty(links, from, to, row);
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
    treaties,
    ownName,
    treaty: (id) => rows.get(id),
    node: (id) => nodes.get(id),
    named: (given) => nodes.get(given) ?? references.get(given),
  };
}

function newNode(id: string, index: number, ownName: string): GraphNode {
  const lower = id.toLowerCase();
  const isOwn = id === ownName;
  return { index, id, lower, isOwn, outgoing: [], incoming: [], revocations: [], links: [] };
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
    const link = { from, to, treaties: [edge], state, isMutual: false };
    links.set(key, link);
    from.links.push(link);
    if (to !== from) to.links.push(link);
  } else {
    known.treaties.push(edge);
    if (rank(state) < rank(known.state)) known.state = state;
  }
}

function keyOf(from: GraphNode, to: GraphNode): string {
  return `${from.index} ${to.index}`;
}

function rank(state: EdgeState): number {
  return LIFECYCLE_STATES.indexOf(state);
}
