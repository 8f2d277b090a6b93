/**
 * The recognition graph as a picture: sovereigns are links that the keyboard can reach, treaties are arrows
 * whose state is shown by color and by pattern. The layout is computed once per graph and cached.
 */
import { LABEL_SIZE, type Label, placeLabels } from './graph-labels.ts';
import {
  type GraphLayout,
  layoutGraph,
  MOST_DRAWN_NODES,
  MOST_DRAWN_TREATIES,
  type Point,
} from './graph-layout.ts';
import {
  EDGE_STATES,
  type EdgeState,
  type GraphLink,
  type GraphModel,
  type GraphNode,
  STATE_WORDS,
} from './graph-model.ts';
import { atlasLink, nameInCell, nameInDrawing } from './graph-names.ts';
import { type Html, html, keyed } from './html.ts';

/** What a page emphasizes; everything else is dimmed. */
export interface Emphasis {
  /** Null when nothing is emphasized. */
  readonly nodes: ReadonlySet<GraphNode> | null;
  readonly links: ReadonlySet<GraphLink> | null;
  readonly selected: GraphNode | null;
}

export const NO_EMPHASIS: Emphasis = { nodes: null, links: null, selected: null };

/** Everything of the picture that does not depend on what is emphasized. */
export interface Drawing {
  readonly width: number;
  readonly height: number;
  readonly nodes: readonly DrawnNode[];
  readonly links: readonly DrawnLink[];
}

interface DrawnNode extends Point {
  readonly node: GraphNode;
  readonly radius: number;
  readonly label: Label;
  readonly name: string;
  readonly title: string;
  /** Starts with the name as drawn, so that the accessible name matches the visible one. */
  readonly spoken: string;
}

interface DrawnLink {
  readonly link: GraphLink;
  readonly path: string;
  readonly title: string;
}

/** Up to this many nodes, names avoid the arrows. */
const MOST_AVOIDED = 120;
/** From this many on, arrows are drawn thinner, so that the nodes still stand out. */
const DENSE = 250;
/** Up to this many emphasized sovereigns show their names even without free space. */
const MOST_NAMED = 30;

const drawings = new WeakMap<GraphModel, Drawing | null>();

/** Null when the graph is empty, or too large for a useful picture. Rendered once per model. */
export function drawingOf(model: GraphModel): Drawing | null {
  const known = drawings.get(model);
  if (known !== undefined) return known;
  const made = drawGraph(model);
  drawings.set(model, made);
  return made;
}

function drawGraph(model: GraphModel): Drawing | null {
  if (model.nodes.length === 0 || isTooLarge(model)) return null;
  const radii = model.nodes.map((node) => radiusOf(node, model.nodes.length));
  const layout = layoutOf(model, radii);
  const places = model.nodes.map((node, index) => ({
    ...(layout.positions[index] ?? { x: 0, y: 0 }),
    radius: radii[index] ?? 0,
    room: (radii[index] ?? 0) + (node.isOwn ? 3 : 0) + (node.revocations.length > 0 ? 5 : 0),
    text: nameInDrawing(node.id),
    weight: node.isOwn ? Number.POSITIVE_INFINITY : node.degree,
  }));
  const labels = placeLabels(
    places.map(({ room, ...place }) => ({ ...place, radius: room })),
    model.links.length <= MOST_AVOIDED
      ? model.links.map(({ from, to }) => [from.index, to.index])
      : [],
    layout,
  );
  const nodes = model.nodes.map((node, index): DrawnNode => {
    const { x = 0, y = 0, radius = 0, text = '' } = places[index] ?? {};
    const label = labels[index] ?? { x, y, anchor: 'start', isShown: false };
    return {
      node,
      x,
      y,
      radius,
      label,
      name: text,
      title: titleOfNode(node, nameInCell(node.id)),
      spoken: titleOfNode(node, text),
    };
  });
  const links = model.links
    .map((link): DrawnLink => ({ link, path: pathOf(link, nodes), title: titleOfLink(link) }))
    // The most important is drawn last, above the rest.
    .sort((a, b) => EDGE_STATES.indexOf(b.link.state) - EDGE_STATES.indexOf(a.link.state));
  return { width: layout.width, height: layout.height, nodes, links };
}

export function isTooLarge({ nodes, document }: GraphModel): boolean {
  return nodes.length > MOST_DRAWN_NODES || document.recognition_edges.length > MOST_DRAWN_TREATIES;
}

/** The last layout: a change of a treaty's state moves no sovereign. */
let lastLayout: { readonly key: string; readonly layout: GraphLayout } | null = null;

function layoutOf({ nodes, links }: GraphModel, radii: readonly number[]): GraphLayout {
  const pairs = links.map(({ from, to }) => [from.index, to.index] as const);
  const key = `${nodes.length};${radii.join(' ')};${pairs.join(' ')}`;
  if (lastLayout?.key !== key) lastLayout = { key, layout: layoutGraph(radii, pairs) };
  return lastLayout.layout;
}

function radiusOf({ degree }: GraphNode, count: number): number {
  const scale = Math.min(1.3, Math.max(0.55, Math.sqrt(50 / count)));
  return Math.round(scale * Math.min(26, 6 + 2.6 * Math.sqrt(degree)) * 10) / 10;
}

function titleOfNode({ isOwn, outgoing, incoming, revocations }: GraphNode, name: string): string {
  const own = isOwn ? ' (this authority)' : '';
  const revoked =
    revocations.length === 0 ? '' : `, ${counted(revocations.length, 'revoked attestation')}`;
  return `${name}${own}: recognizes by ${counted(outgoing.length, 'treaty', 'treaties')}, is recognized by ${counted(incoming.length, 'treaty', 'treaties')}${revoked}`;
}

function titleOfLink({ from, to, treaties, state }: GraphLink): string {
  const several = treaties.length === 1 ? '' : ` (${treaties.length} treaties)`;
  return `${nameInCell(from.id)} recognizes ${nameInCell(to.id)}: ${STATE_WORDS[state]}${several}`;
}

export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

/** From the rim of one node to the rim of the other; bent when there is an arrow back. */
function pathOf({ from, to, isMutual }: GraphLink, nodes: readonly DrawnNode[]): string {
  const a = nodes[from.index];
  const b = nodes[to.index];
  if (a === undefined || b === undefined) return '';
  if (a === b) return loopAt(a);
  const [dx, dy] = [b.x - a.x, b.y - a.y];
  const distance = Math.hypot(dx, dy) || 1;
  const bend = isMutual ? Math.min(22, distance * 0.14) : 0;
  const middle = {
    x: (a.x + b.x) / 2 - (dy / distance) * bend * 2,
    y: (a.y + b.y) / 2 + (dx / distance) * bend * 2,
  };
  const start = towards(a, middle, a.radius + 1);
  const end = towards(b, middle, b.radius + 3);
  if (bend === 0) return `M${at(start)}L${at(end)}`;
  return `M${at(start)}Q${at(middle)} ${at(end)}`;
}

function loopAt({ x, y, radius }: DrawnNode): string {
  const size = radius + 16;
  const start = { x: x - radius * 0.7, y: y - radius * 0.7 };
  const end = { x: x + radius * 0.7 + 2, y: y - radius * 0.7 - 2 };
  return `M${at(start)}C${at({ x: x - size, y: y - 2 * size })} ${at({ x: x + size, y: y - 2 * size })} ${at(end)}`;
}

function towards(from: Point, to: Point, by: number): Point {
  const distance = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  return {
    x: from.x + ((to.x - from.x) * by) / distance,
    y: from.y + ((to.y - from.y) * by) / distance,
  };
}

function at({ x, y }: Point): string {
  return `${Math.round(x * 10) / 10} ${Math.round(y * 10) / 10}`;
}

export function graphPicture(drawing: Drawing, emphasis: Emphasis): Html {
  const { width, height, nodes, links } = drawing;
  const title = `Recognition graph: ${counted(nodes.length, 'sovereign')}, linked ${counted(links.length, 'time')}`;
  const present = new Set(links.map(({ link }) => link.state));
  const states = EDGE_STATES.filter((state) => present.has(state));
  return html`<figure class="graph">
<div class="graph-box">
<svg viewBox="0 0 ${width} ${height}" role="group" aria-labelledby="graph-title" class="${classes('graph-picture', links.length > DENSE && 'dense')}">
${keyed('title', html`<title id="graph-title">${title}</title>`)}
${keyed('arrows', html`<defs>${states.map(arrowHead)}</defs>`)}
${keyed('links', html`<g class="links" aria-hidden="true">${links.map((drawn) => keyed(linkKey(drawn), drawnLink(drawn, emphasis)))}</g>`)}
${keyed('nodes', html`<g class="nodes">${nodes.map((drawn) => keyed(drawn.node.index, drawnNode(drawn, emphasis)))}</g>`)}
</svg>
</div>
${keyed('legend', legend(drawing, states))}</figure>
`;
}

function arrowHead(state: EdgeState): Html {
  return html`<marker id="arrow-${state}" class="arrow s-${state}" viewBox="0 0 10 10" refX="9" refY="5" markerUnits="userSpaceOnUse" markerWidth="9" markerHeight="9" orient="auto"><path d="M1 1 9 5 1 9z"/></marker>
`;
}

function drawnLink({ link, path, title }: DrawnLink, { links }: Emphasis): Html {
  const { state } = link;
  const names = classes('link', `s-${state}`, links !== null && (links.has(link) ? 'lit' : 'dim'));
  return html`<path class="${names}" d="${path}" marker-end="url(#arrow-${state})"><title>${title}</title></path>
`;
}

/** From which node to which. */
function linkKey({ link: { from, to } }: DrawnLink): string {
  return `${from.index}-${to.index}`;
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
  return html`<a href="${atlasLink(node.id)}#selected" class="${names}" aria-label="${spoken}"><title>${title}</title>
${node.revocations.length > 0 ? ring('evidence', 5) : ''}${node.isOwn ? ring('own-ring', 3) : ''}${ring('dot', 0)}
<text x="${label.x}" y="${label.y}" text-anchor="${label.anchor}" font-size="${LABEL_SIZE}">${name}</text></a>
`;
}

function legend({ nodes }: Drawing, states: readonly EdgeState[]): Html {
  const isCrowded = nodes.some(({ label }) => !label.isShown);
  return html`<figcaption class="legend">
<span class="legend-title">Treaties</span>
<ul>
${states.map(
  (
    state,
  ) => html`<li><svg viewBox="0 0 44 12" width="44" height="12" aria-hidden="true" focusable="false"><path class="link s-${state}" d="M1 6H34"/><path class="arrow s-${state}" d="M34 2 42 6 34 10z"/></svg>${STATE_WORDS[state]}</li>
`,
)}${nodes.some(({ node }) => node.isOwn) ? OWN_LEGEND : ''}${
  nodes.some(({ node }) => node.revocations.length > 0) ? EVIDENCE_LEGEND : ''
}</ul>
<p>An arrow leads from the sovereign that recognizes to the one that is recognized. The more a sovereign is linked, the larger it is drawn.${
    isCrowded ? ' Names without room show under the pointer and on focus.' : ''
  }</p>
</figcaption>
`;
}

const OWN_LEGEND = html`<li><svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false" class="node own"><circle class="own-ring" cx="8" cy="8" r="7"/><circle class="dot" cx="8" cy="8" r="4"/></svg>this authority</li>
`;

const EVIDENCE_LEGEND = html`<li><svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false" class="node"><circle class="evidence" cx="8" cy="8" r="7"/><circle class="dot" cx="8" cy="8" r="4"/></svg>has revoked attestations</li>
`;

function classes(...names: readonly (string | false)[]): string {
  return names.filter((name) => name !== false).join(' ');
}
