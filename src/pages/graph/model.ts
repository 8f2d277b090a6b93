/** The recognition graph for drawing and exploring, built from the published Connectome document. */
import { parseJson } from '../../base/json/parse.ts';
import { visitInSlices } from '../../base/work.ts';
import type { Dashboard } from '../../protocol/rows/dashboard.ts';
import type { BlastRadiusRow, Connectome, EdgeRow } from '../../protocol/rows/graph.ts';
import { LIFECYCLE_STATES } from '../../protocol/rows/recognition.ts';
import { reference } from '../ui/values.ts';

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
type GraphDocument = Omit<Connectome, 'active_treaties'>;

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

/**
 * Reads what pages show of published documents out of their bytes: parsing thousands of rows at once would block the
 * thread. The text of a document is canonical, so its members are found by their names.
 */

/** Delimiters of the treaties of the dashboard; no member before them is free-form. */
const TREATIES = '"treaties":[';
const FEEDS = '],"revocation_feed_summary":';

/** The dashboard with its first treaties out of thousands. */
export function readDashboard(
  { buffer, byteOffset, byteLength }: Uint8Array,
  mostTreaties: number,
): Dashboard {
  const text = Buffer.from(buffer, byteOffset, byteLength);
  const start = text.indexOf(TREATIES) + TREATIES.length;
  const end = text.indexOf(FEEDS, start);
  const treaties = firstRows(text.subarray(start, end), mostTreaties);
  const json = text.toString('utf8', 0, start) + treaties + text.toString('utf8', end);
  return parseJson(json) as unknown as Dashboard;
}

/** Delimiters between members of the Connectome. */
const EDGES = '],"recognition_edges":[';
const BLAST_RADIUS = '],"revocation_blast_radius":[';
const MATERIAL = '],"revoked_trust_material":[';
const SOVEREIGNS = '],"sovereigns":[';
const SUMMARY = '],"summary":';

/** The recognition graph of the Connectome, in slices. */
export function* readGraph(document: Uint8Array): Generator<void, GraphDocument> {
  const text = copyOfGraph(document);
  let at = 0;
  function* rowsBetween<Row>(start: string, end: string): Generator<void, Row[]> {
    const from = at + start.length;
    at = text.indexOf(end, from);
    return yield* readRows<Row>(text.subarray(from, at));
  }
  return {
    recognition_edges: yield* rowsBetween(EDGES, BLAST_RADIUS),
    revocation_blast_radius: yield* rowsBetween(BLAST_RADIUS, MATERIAL),
    revoked_trust_material: yield* rowsBetween(MATERIAL, SOVEREIGNS),
    sovereigns: yield* rowsBetween(SOVEREIGNS, SUMMARY),
    summary: parseJson(
      text.toString('utf8', at + SUMMARY.length, text.length - 1),
    ) as GraphDocument['summary'],
  };
}

/**
 * The full treaties come first and make up most of the text, but no page shows them. Nothing after them has
 * free-form members, and quotes inside a string are escaped.
 */
function copyOfGraph({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  const text = Buffer.from(buffer, byteOffset, byteLength);
  // The buffer of a document may be reused after this turn of the event loop.
  return Buffer.from(text.subarray(text.lastIndexOf(EDGES)));
}

/** Parsing these takes a few milliseconds. */
const BYTES_PER_SLICE = 128 * 1024;

/** Parses the rows of a list, which contain no nested objects, in slices. `list` comes without its brackets. */
function* readRows<Row>(list: Buffer): Generator<void, Row[]> {
  const rows: Row[] = [];
  for (let at = 0; at < list.length; ) {
    const end = endOfRow(list, at + BYTES_PER_SLICE);
    for (const row of parseJson(`[${list.toString('utf8', at, end)}]`) as Row[]) rows.push(row);
    at = end + 1;
    if (at < list.length) yield;
  }
  return rows;
}

/** Returns the text of the first rows of a list. `list` comes without its brackets. */
function firstRows(list: Buffer, most: number): string {
  let end = 0;
  for (let count = 0; count < most && end < list.length; count += 1) end = endOfRow(list, end);
  return list.toString('utf8', 0, end);
}

const NEXT_ROW = '},{"';

/** Returns the end of the row that contains this offset or ends just before it. */
function endOfRow(list: Buffer, from: number): number {
  for (let at = list.indexOf(NEXT_ROW, from); at >= 0; at = list.indexOf(NEXT_ROW, at + 1)) {
    // Inside a string, these characters could only be followed by the closing quote, never by a quote and a letter.
    if (isLetter(list[at + NEXT_ROW.length])) return at + 1;
  }
  return list.length;
}

function isLetter(code = 0): boolean {
  return code >= 0x61 && code <= 0x7a;
}
