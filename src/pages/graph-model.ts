/** The recognition graph as it is drawn and explored: made from the published Connectome document. */
import type { BlastRadiusRow, Connectome, EdgeRow } from '../views/rows/graph.ts';

export type EdgeState = EdgeRow['lifecycle_state'];

/** From most to least important. */
export const EDGE_STATES = ['active', 'expiring_soon', 'expired', 'revoked', 'replaced'] as const;

export const STATE_WORDS: Readonly<Record<EdgeState, string>> = {
  active: 'active',
  expiring_soon: 'expiring soon',
  expired: 'expired',
  revoked: 'revoked',
  replaced: 'replaced',
};

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
  /** Whether there are also treaties in the other direction. */
  isMutual: boolean;
}

/** What pages show of the Connectome document. */
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

export function graphModel(document: GraphDocument, ownName: string): GraphModel {
  const byId = new Map<string, GraphNode>();
  for (const { sovereign_id: id } of document.sovereigns) {
    byId.set(id, {
      index: byId.size,
      id,
      isOwn: id === ownName,
      outgoing: [],
      incoming: [],
      revocations: [],
      degree: 0,
    });
  }
  const links = linksOf(document.recognition_edges, byId);
  for (const row of document.revocation_blast_radius) {
    byId.get(row.issuer_sovereign_id)?.revocations.push(row);
  }
  const treaties = new Map(document.recognition_edges.map((edge) => [edge.treaty_id, edge]));
  return {
    document,
    nodes: [...byId.values()],
    links,
    ownName,
    treaty: (id) => treaties.get(id),
    node: (id) => byId.get(id),
  };
}

function linksOf(edges: readonly EdgeRow[], nodes: ReadonlyMap<string, GraphNode>): GraphLink[] {
  const links = new Map<string, GraphLink>();
  for (const edge of edges) {
    const from = nodes.get(edge.from);
    const to = nodes.get(edge.to);
    if (from === undefined || to === undefined) continue;
    from.outgoing.push(edge);
    to.incoming.push(edge);
    const key = `${from.index} ${to.index}`;
    const known = links.get(key);
    if (known === undefined) {
      const state = edge.lifecycle_state;
      links.set(key, { from, to, treaties: [edge], state, isMutual: false });
      from.degree += 1;
      if (to !== from) to.degree += 1;
    } else {
      known.treaties.push(edge);
      if (rank(edge.lifecycle_state) < rank(known.state)) known.state = edge.lifecycle_state;
    }
  }
  for (const link of links.values()) {
    link.isMutual = link.from !== link.to && links.has(`${link.to.index} ${link.from.index}`);
  }
  return [...links.values()];
}

function rank(state: EdgeState): number {
  return EDGE_STATES.indexOf(state);
}
