/**
 * Draws a sovereign surrounded by its neighbors. Readers can choose any sovereign, so the drawing must be cheap: it
 * takes one pass over the links of those drawn and no force-directed layout.
 */
import { LIFECYCLE_STATES } from '../../protocol/rows/recognition.ts';
import { nameInDrawing } from '../ui/values.ts';
import { drawingFrom, type PlacedNode, radiusOf, roomOf } from './drawing.ts';
import { GAP, LABEL_SIZE, type Label } from './labels.ts';
import type { Point } from './layout.ts';
import type { GraphNode } from './model.ts';

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
