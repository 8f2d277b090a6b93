/** The drawing of each page of the graph. */
import { counted, shownCount } from '../../base/counts.ts';
import { LIFECYCLE_STATES } from '../../protocol/rows/recognition.ts';
import { type Html, html, NO_HTML } from '../ui/html.ts';
import { emptyState, TO_ISSUE } from '../ui/parts.ts';
import { atlasLink, capital, nameInCell, nameInDrawing, sovereignAddress } from '../ui/values.ts';
import {
  type Drawing,
  type DrawnGraph,
  type DrawnLink,
  type DrawnNode,
  drawingFrom,
  isTooLarge,
  type PlacedNode,
  radiusOf,
  roomOf,
} from './drawing.ts';
import { GAP, LABEL_SIZE, type Label } from './labels.ts';
import { MOST_DRAWN_NODES, MOST_DRAWN_TREATIES, type Point } from './layout.ts';
import type { EdgeState, GraphLink, GraphModel, GraphNode } from './model.ts';

/** The picture of `/connectome`, in which every sovereign leads to the atlas. */
export function stillGraph(model: DrawnGraph): Html {
  if (isTooLarge(model)) return tooLarge(model);
  return model.drawing === null ? EMPTY : graphPicture(model.drawing, null);
}

/** The drawing of `/atlas`: the whole graph or, where that is too large, the neighborhood of `center`. */
export function graphToExplore(model: DrawnGraph, emphasis: Emphasis, center?: GraphNode): Html {
  if (center !== undefined && isTooLarge(model)) return neighborhood(model, center);
  return model.drawing === null ? EMPTY : graphPicture(model.drawing, emphasis);
}

const EMPTY = emptyState(
  'The graph is empty. A sovereign appears once a treaty names it:',
  TO_ISSUE,
);

function tooLarge(model: GraphModel): Html {
  return html`<p class="notice">With ${sizeOf(model)} the graph is too large to draw legibly (the limits are ${shownCount(MOST_DRAWN_NODES)} and ${shownCount(MOST_DRAWN_TREATIES)}). All of its treaties are <a href="#treaties-heading">listed below</a>, page by page; the <a href="./atlas">atlas</a> draws this authority, or another sovereign, and those linked with it.</p>`;
}

function neighborhood(model: GraphModel, center: GraphNode): Html {
  const { drawing, drawn, all } = neighborhoodOf(center);
  const name = html`<bdi>${nameInCell(center.id)}</bdi>`;
  const linked = counted(all, 'sovereign');
  const what =
    drawn === all
      ? html`${name} and the ${linked} linked with it.`
      : html`${name} and ${drawn} of the ${linked} linked with it: first those with treaties in force, then those with the most links. Treaties with the other ${shownCount(all - drawn)} are in the tables on <a href="${sovereignAddress(center.id)}">its own page</a>.`;
  return html`<p class="small muted">${what} The whole graph, with ${sizeOf(model)}, is too large to draw legibly: choose another sovereign in the drawing or <a href="#list-heading">below</a>.</p>
${graphPicture(drawing, { ...NO_EMPHASIS, selected: center })}`;
}

function sizeOf({ nodes, document }: GraphModel): string {
  return `${counted(nodes.length, 'sovereign')} and ${counted(document.recognition_edges.length, 'treaty', 'treaties')}`;
}

/**
 * The recognition graph as a picture: sovereigns are links in the tab order, and treaties are arrows whose color and
 * pattern show their state.
 */

/** What a page emphasizes; everything else is dimmed. */
export interface Emphasis {
  /** Null when nothing is emphasized. */
  readonly nodes: ReadonlySet<GraphNode> | null;
  readonly links: ReadonlySet<GraphLink> | null;
  readonly selected: GraphNode | null;
}

export const NO_EMPHASIS: Emphasis = { nodes: null, links: null, selected: null };

/** From this number of links on, arrows are drawn thinner, so that the nodes still stand out. */
const DENSE = 250;
/** Up to this number, emphasized sovereigns show their names even without free space. */
const MOST_NAMED = 30;

/** Scripts let the reader walk in it; `emphasis` is null for a still picture. */
function graphPicture(drawing: Drawing, emphasis: Emphasis | null): Html {
  const { about, width, height, nodes, links } = drawing;
  const title = `${about.subject}: ${counted(nodes.length, 'sovereign')}, linked ${counted(links.length, 'time')}`;
  const present = new Set(links.map(({ link }) => link.state));
  const states = LIFECYCLE_STATES.filter((state) => present.has(state));
  const isStill = emphasis === null;
  const shown = emphasis ?? NO_EMPHASIS;
  return html`<figure class="${classes('graph', !isStill && 'open')}">
<a class="skip" href="#graph-legend">Skip the drawing</a>
${isStill ? NO_HTML : TOOLS}<div class="graph-box" tabindex="0" role="group" aria-label="Drawing">
<svg viewBox="0 0 ${width} ${height}" role="group" aria-labelledby="graph-title" class="${classes('graph-picture', links.length > DENSE && 'dense')}">
<title id="graph-title">${title}</title>
<defs>${states.map(arrowHead)}</defs>
<g class="scene"><g class="links" aria-hidden="true">${links.map((drawn) => drawnLink(drawn, shown))}</g>
<g class="nodes" font-size="${LABEL_SIZE}">${nodes.map((drawn) => drawnNode(drawn, shown))}</g></g>
</svg>
</div>
${legend(drawing, states, isStill)}</figure>`;
}

/** Each button does the same as its key. */
const TOOLS = html`<div class="graph-tools needs-js" role="group" aria-label="View of the drawing">
<button type="button" data-key-of="-" aria-label="Zoom out" aria-keyshortcuts="-" title="Zoom out (-)">−</button>
<span class="graph-zoom" role="status" data-zoom-shown>100%</span>
<button type="button" data-key-of="+" aria-label="Zoom in" aria-keyshortcuts="+" title="Zoom in (+)">+</button>
<button type="button" data-key-of="0" aria-keyshortcuts="0" title="Show the whole drawing (0)">Show all</button>
<button type="button" data-key-of="f" aria-keyshortcuts="F" title="Full screen (F)" hidden>Full screen</button>
</div>`;

function arrowHead(state: EdgeState): Html {
  return html`<marker id="arrow-${state}" class="arrow s-${state}" viewBox="0 0 10 10" refX="9" refY="5" markerUnits="userSpaceOnUse" markerWidth="9" markerHeight="9" orient="auto"><path d="M1 1 9 5 1 9z"/></marker>`;
}

function drawnLink({ link, path, title }: DrawnLink, { links }: Emphasis): Html {
  const { from, to, state } = link;
  const names = classes('link', `s-${state}`, links !== null && (links.has(link) ? 'lit' : 'dim'));
  return html`<path id="${`link-${from.index}-${to.index}`}" class="${names}" d="${path}" marker-end="url(#arrow-${state})"><title>${title}</title></path>`;
}

function drawnNode(
  { node, x, y, radius, label, name, title, spoken }: DrawnNode,
  { nodes, selected }: Emphasis,
): Html {
  const names = classes(
    'node',
    node.isOwn && 'own',
    node === selected && 'selected',
    !label.isShown && 'crowded',
    nodes !== null && (nodes.has(node) ? 'lit' : 'dim'),
    nodes !== null && nodes.size <= MOST_NAMED && nodes.has(node) && 'near',
  );
  const ring = (kind: string, room: number) =>
    html`<circle class="${kind}" cx="${x}" cy="${y}" r="${radius + room}"/>`;
  return html`<a id="${`node-${node.index}`}" href="${atlasLink(node.id)}#selected" class="${names}"${spoken === title ? NO_HTML : html` aria-label="${spoken}"`}><title>${title}</title>
${node.revocations.length > 0 ? ring('evidence', 5) : ''}${node.isOwn ? ring('own-ring', 3) : ''}${ring('dot', 0)}
<text x="${label.x}" y="${label.y}" text-anchor="${label.anchor}">${name}</text></a>`;
}

function legend({ about, nodes }: Drawing, states: readonly EdgeState[], isStill: boolean): Html {
  const isCrowded = nodes.some(({ label }) => !label.isShown);
  return html`<figcaption class="legend" id="graph-legend" tabindex="-1">
<span class="legend-title">Treaties</span>
<ul>
${states.map(
  (state) =>
    html`<li><svg viewBox="0 0 44 12" width="44" height="12" aria-hidden="true"><path class="link s-${state}" d="M1 6H34"/><path class="arrow s-${state}" d="M34 2 42 6 34 10z"/></svg>${capital(state)}</li>`,
)}${nodes.some(({ node }) => node.isOwn) ? OWN_LEGEND : ''}${
  nodes.some(({ node }) => node.revocations.length > 0) ? EVIDENCE_LEGEND : ''
}</ul>
<p>Arrows point from the recognizing to the recognized sovereign. ${about.note}${
    isCrowded ? ' Names that do not fit appear on hover and on focus.' : ''
  }</p>
${isStill ? STILL : MOVES}</figcaption>`;
}

const STILL = html`<p>To zoom, and to follow one sovereign or the path between two, open the <a href="./atlas">atlas</a>.</p>
`;
const MOVES = html`<p class="needs-js">Zoom with Ctrl and the wheel, by pinching, or with + and −; pan by dragging or with the arrow keys; leave with Escape.</p>
`;

const OWN_LEGEND = html`<li><svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" class="node own"><circle class="own-ring" cx="8" cy="8" r="7"/><circle class="dot" cx="8" cy="8" r="4"/></svg>This authority</li>`;

const EVIDENCE_LEGEND = html`<li><svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" class="node"><circle class="evidence" cx="8" cy="8" r="7"/><circle class="dot" cx="8" cy="8" r="4"/></svg>Has revoked attestations</li>`;

function classes(...names: readonly (string | false)[]): string {
  return names.filter((name) => name !== false).join(' ');
}

/**
 * Draws a sovereign surrounded by its neighbors. Readers can choose any sovereign, so the drawing must be cheap: it
 * takes one pass over the links of those drawn and no force-directed layout.
 */

/** This many names, and the links among them, fit into a drawing. */
export const MOST_NEIGHBORS = 36;

const NOTE =
  'The chosen sovereign is in the center; other sovereigns with more links are drawn larger.';
const WIDTH = 900;
const MIDDLE = WIDTH / 2;
/** The horizontal radius, which leaves room for names at the sides. */
const REACH = 210;
const ROW = 32;

export function neighborhoodOf(center: GraphNode) {
  const linked = neighborsOf(center);
  const neighbors = linked.slice(0, MOST_NEIGHBORS).sort((a, b) => a.index - b.index);
  const present = new Set([center, ...neighbors]);
  const links = [...present]
    .sort((a, b) => a.index - b.index)
    .flatMap((node) => node.links.filter(({ from, to }) => from === node && present.has(to)));
  const rows = Math.ceil(neighbors.length / 2);
  const height = Math.max(260, 80 + rows * ROW);
  const placed = [placedInMiddle(center, height), ...placedAround(neighbors, height)];
  const about = { subject: `Neighborhood of ${nameInDrawing(center.id)}`, note: NOTE };
  return {
    drawing: drawingFrom(about, { width: WIDTH, height }, placed, links),
    /** The number of neighbors that are drawn; `all` counts the rest, too. */
    drawn: neighbors.length,
    all: linked.length,
  };
}

/** The sovereigns with treaties in force come first, then this authority, then those with most links. */
function neighborsOf(center: GraphNode): GraphNode[] {
  const ranks = new Map<GraphNode, number>();
  for (const { from, to, state } of center.links) {
    if (from === to) continue;
    const other = from === center ? to : from;
    const rank = LIFECYCLE_STATES.indexOf(state);
    ranks.set(other, Math.min(rank, ranks.get(other) ?? rank));
  }
  const rankOf = (node: GraphNode) => ranks.get(node) ?? 0;
  return [...ranks.keys()].sort(
    (a, b) =>
      rankOf(a) - rankOf(b) ||
      Number(b.isOwn) - Number(a.isOwn) ||
      b.links.length - a.links.length ||
      a.index - b.index,
  );
}

function placedInMiddle(node: GraphNode, height: number): PlacedNode {
  const [x, y, radius] = [MIDDLE, height / 2, 20];
  const above = y - roomOf(node, radius) - GAP;
  return { node, x, y, radius, label: { x, y: above, anchor: 'middle', isShown: true } };
}

/** Places nodes clockwise from the top, in rows, so that names on each side do not touch. */
function placedAround(nodes: readonly GraphNode[], height: number): PlacedNode[] {
  const right = Math.ceil(nodes.length / 2);
  return nodes.map((node, index) => {
    const isRight = index < right;
    const row = isRight ? index : nodes.length - 1 - index;
    const at = placeOnRim(row, isRight ? right : nodes.length - right, isRight ? 1 : -1, height);
    const radius = Math.min(14, radiusOf(node, nodes.length));
    return { node, ...at, radius, label: labelBeside(at, roomOf(node, radius), isRight) };
  });
}

function placeOnRim(row: number, rows: number, side: 1 | -1, height: number): Point {
  const down = ((row + 0.5) / rows) * 2 - 1;
  const across = REACH * Math.sqrt(1 - down * down);
  return {
    x: Math.round(MIDDLE + side * across),
    y: Math.round(height / 2 + down * (height / 2 - 40)),
  };
}

function labelBeside({ x, y }: Point, room: number, isRight: boolean): Label {
  const off = room + GAP;
  return {
    x: Math.round(isRight ? x + off : x - off),
    y: Math.round(y + LABEL_SIZE * 0.35),
    anchor: isRight ? 'start' : 'end',
    isShown: true,
  };
}
