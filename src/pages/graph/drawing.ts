/** The geometry of a drawn graph. The layout is computed once per graph and cached. */

import { counted } from '../../base/counts.ts';
import { LIFECYCLE_STATES } from '../../protocol/rows/recognition.ts';
import { stateBadge } from '../ui/parts.ts';
import { nameInCell, nameInDrawing } from '../ui/values.ts';
import { type Label, placeLabels } from './labels.ts';
import {
  type GraphLayout,
  layoutGraph,
  MOST_DRAWN_NODES,
  MOST_DRAWN_TREATIES,
  type Point,
} from './layout.ts';
import type { GraphLink, GraphModel, GraphNode } from './model.ts';

export interface DrawingTexts {
  /** What the drawing shows, in a word or two. */
  readonly subject: string;
  /** What positions and sizes mean. */
  readonly note: string;
}

/** The parts of the picture that do not depend on the emphasis. */
export interface Drawing {
  readonly about: DrawingTexts;
  readonly width: number;
  readonly height: number;
  readonly nodes: readonly DrawnNode[];
  readonly links: readonly DrawnLink[];
}

export interface PlacedNode extends Point {
  readonly node: GraphNode;
  readonly radius: number;
  readonly label: Label;
}

export interface DrawnNode extends PlacedNode {
  readonly name: string;
  readonly title: string;
  /** The accessible name; unlike the title, it begins with the name as drawn, which may be a part of the whole. */
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

const WHOLE: DrawingTexts = {
  subject: 'Recognition graph',
  note: 'Sovereigns with more links are drawn larger.',
};

export function* drawnGraph(model: GraphModel): Generator<void, DrawnGraph> {
  return { ...model, drawing: yield* drawingOf(model) };
}

function* drawingOf(model: GraphModel): Generator<void, Drawing | null> {
  if (model.nodes.length === 0 || isTooLarge(model)) return null;
  const radii = model.nodes.map((node) => radiusOf(node, model.nodes.length));
  const layout = yield* layoutOf(model, radii);
  const places = model.nodes.map((node, index) => ({
    ...(layout.positions[index] ?? { x: 0, y: 0 }),
    node,
    radius: radii[index] ?? 0,
  }));
  const labels = yield* placeLabels(
    places.map(({ node, x, y, radius }) => ({
      x,
      y,
      radius: roomOf(node, radius),
      text: nameInDrawing(node.id),
      weight: node.isOwn ? Number.POSITIVE_INFINITY : node.links.length,
    })),
    model.links.length <= MOST_AVOIDED
      ? model.links.map(({ from, to }) => [from.index, to.index])
      : [],
    layout,
  );
  const placed = places.map((place, index): PlacedNode => {
    const { x, y } = place;
    return { ...place, label: labels[index] ?? { x, y, anchor: 'start', isShown: false } };
  });
  return drawingFrom(WHOLE, layout, placed, model.links);
}

/** All links are between the given nodes. */
export function drawingFrom(
  about: DrawingTexts,
  { width, height }: { readonly width: number; readonly height: number },
  placed: readonly PlacedNode[],
  between: readonly GraphLink[],
): Drawing {
  const nodes = placed.map((place): DrawnNode => {
    const { node } = place;
    const name = nameInDrawing(node.id);
    return {
      ...place,
      name,
      title: titleOfNode(node, nameInCell(node.id)),
      spoken: titleOfNode(node, name),
    };
  });
  const drawn = new Map(nodes.map((each) => [each.node, each]));
  const links = between
    .map((link): DrawnLink => ({ link, path: pathOf(link, drawn), title: titleOfLink(link) }))
    // The most important links are drawn last, above the others.
    .sort(
      (a, b) => LIFECYCLE_STATES.indexOf(b.link.state) - LIFECYCLE_STATES.indexOf(a.link.state),
    );
  return { about, width, height, nodes, links };
}

export function isTooLarge({ nodes, document }: GraphModel): boolean {
  return nodes.length > MOST_DRAWN_NODES || document.recognition_edges.length > MOST_DRAWN_TREATIES;
}

/** The last layout, kept because a change of a treaty's state moves no sovereign. */
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

/** The radius including the rings around the dot. */
export function roomOf({ isOwn, revocations }: GraphNode, radius: number): number {
  return radius + (isOwn ? 3 : 0) + (revocations.length > 0 ? 5 : 0);
}

export function radiusOf({ links }: GraphNode, count: number): number {
  const scale = Math.min(1.3, Math.max(0.55, Math.sqrt(50 / count)));
  return Math.round(scale * Math.min(26, 6 + 2.6 * Math.sqrt(links.length)) * 10) / 10;
}

function titleOfNode({ isOwn, outgoing, incoming, revocations }: GraphNode, name: string): string {
  const own = isOwn ? ' (this authority)' : '';
  const revoked =
    revocations.length === 0 ? '' : `, ${counted(revocations.length, 'revoked attestation')}`;
  return `${name}${own}: recognizes by ${counted(outgoing.length, 'treaty', 'treaties')}, is recognized by ${counted(incoming.length, 'treaty', 'treaties')}${revoked}`;
}

function titleOfLink({ from, to, treaties, state }: GraphLink): string {
  const several = treaties.length === 1 ? '' : ` (${treaties.length} treaties)`;
  return `${nameInCell(from.id)} recognizes ${nameInCell(to.id)}: ${stateBadge(state).word}${several}`;
}

/** Leads from rim to rim; curved when there is also an arrow back. */
function pathOf(
  { from, to, isMutual }: GraphLink,
  drawn: ReadonlyMap<GraphNode, DrawnNode>,
): string {
  const a = drawn.get(from);
  const b = drawn.get(to);
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
  return `${Math.round(x)} ${Math.round(y)}`;
}
