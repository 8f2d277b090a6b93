/** Where everything of a drawn graph stands. The layout is computed once per graph and cached. */
import { shownCount } from './counts.ts';
import { type Label, placeLabels } from './graph-labels.ts';
import {
  type GraphLayout,
  layoutGraph,
  MOST_DRAWN_NODES,
  MOST_DRAWN_TREATIES,
  type Point,
} from './graph-layout.ts';
import {
  EDGE_STATES,
  type GraphLink,
  type GraphModel,
  type GraphNode,
  STATE_WORDS,
} from './graph-model.ts';
import { nameInCell, nameInDrawing } from './graph-names.ts';

/** Everything of the picture that does not depend on what is emphasized. */
export interface Drawing {
  readonly width: number;
  readonly height: number;
  readonly nodes: readonly DrawnNode[];
  readonly links: readonly DrawnLink[];
}

export interface DrawnNode extends Point {
  readonly node: GraphNode;
  readonly radius: number;
  readonly label: Label;
  readonly name: string;
  readonly title: string;
  /** Starts with the name as drawn, so that the accessible name matches the visible one. */
  readonly spoken: string;
}

export interface DrawnLink {
  readonly link: GraphLink;
  readonly path: string;
  readonly title: string;
}

/** Up to this many nodes, names avoid the arrows. */
const MOST_AVOIDED = 120;

/** A graph with its picture. */
export interface DrawnGraph extends GraphModel {
  /** Null when the graph is empty, or too large for a useful picture. */
  readonly drawing: Drawing | null;
}

export function* drawnGraph(model: GraphModel): Generator<void, DrawnGraph> {
  return { ...model, drawing: yield* drawingOf(model) };
}

function* drawingOf(model: GraphModel): Generator<void, Drawing | null> {
  if (model.nodes.length === 0 || isTooLarge(model)) return null;
  const radii = model.nodes.map((node) => radiusOf(node, model.nodes.length));
  const layout = yield* layoutOf(model, radii);
  const places = model.nodes.map((node, index) => ({
    ...(layout.positions[index] ?? { x: 0, y: 0 }),
    radius: radii[index] ?? 0,
    room: (radii[index] ?? 0) + (node.isOwn ? 3 : 0) + (node.revocations.length > 0 ? 5 : 0),
    text: nameInDrawing(node.id),
    weight: node.isOwn ? Number.POSITIVE_INFINITY : node.degree,
  }));
  const labels = yield* placeLabels(
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

function* layoutOf(
  { nodes, links }: GraphModel,
  radii: readonly number[],
): Generator<void, GraphLayout> {
  const pairs = links.map(({ from, to }) => [from.index, to.index] as const);
  const key = `${nodes.length};${radii.join(' ')};${pairs.join(' ')}`;
  if (lastLayout?.key === key) return lastLayout.layout;
  const layout = yield* layoutGraph(radii, pairs);
  lastLayout = { key, layout };
  return layout;
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
  return `${shownCount(count)} ${count === 1 ? one : many}`;
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
