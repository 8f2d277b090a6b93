/**
 * Chooses the names that the drawing always shows, without overlapping names or nodes. Sovereigns with the most links
 * come first.
 */
import { visitInSlices } from '../../base/work.ts';
import type { Point } from './layout.ts';

export interface LabeledNode extends Point {
  readonly radius: number;
  readonly text: string;
  /** Labels with higher priority are placed first. */
  readonly weight: number;
}

export interface Label {
  readonly x: number;
  readonly y: number;
  readonly anchor: 'start' | 'middle' | 'end';
  /** False when there is no space: the label then appears only on focus and under the pointer. */
  readonly isShown: boolean;
}

interface Box {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

/** Takes a few milliseconds where there are lines to avoid. */
const LABELS_PER_SLICE = 20;

export const LABEL_SIZE = 13;
/** Distance between a dot and its name. */
export const GAP = 5;
const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\uff00-\uff60\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;

/** Returns labels in the order of the nodes. Each gets the free place that the fewest lines cross. */
export function* placeLabels(
  nodes: readonly LabeledNode[],
  lines: readonly (readonly [from: number, to: number])[],
  { width, height }: { readonly width: number; readonly height: number },
): Generator<void, Label[]> {
  const taken: Box[] = nodes.map(circleBox);
  const labels: Label[] = [];
  const order = nodes
    .map((_, index) => index)
    .sort((a, b) => weightAt(nodes, b) - weightAt(nodes, a) || a - b);
  const crossings = (box: Box) =>
    lines.filter(([from, to]) => crosses(nodes[from], nodes[to], box)).length;
  yield* visitInSlices(order, LABELS_PER_SLICE, (index) => {
    const node = nodes[index];
    if (node === undefined) return;
    const inside = placesFor(node).filter((place) => isInside(place, width, height));
    const free = inside
      .filter(({ box }) => !taken.some((other) => overlap(box, other, node)))
      .map((place) => ({ place, cost: crossings(place.box) }))
      .sort((a, b) => a.cost - b.cost)[0]?.place;
    if (free !== undefined) taken.push(free.box);
    const { x, y, anchor } = free ?? inside[0] ?? { x: node.x, y: node.y, anchor: 'middle' };
    labels[index] = { x: Math.round(x), y: Math.round(y), anchor, isShown: free !== undefined };
  });
  return labels;
}

/** Whether the line crosses the box, tested in steps smaller than the height of a name. */
function crosses(from: Point | undefined, to: Point | undefined, box: Box): boolean {
  if (from === undefined || to === undefined) return false;
  const steps = Math.ceil(Math.hypot(to.x - from.x, to.y - from.y) / (LABEL_SIZE / 2));
  for (let step = 0; step <= steps; step += 1) {
    const x = from.x + ((to.x - from.x) * step) / steps;
    const y = from.y + ((to.y - from.y) * step) / steps;
    if (x > box.left && x < box.right && y > box.top && y < box.bottom) return true;
  }
  return false;
}

function weightAt(nodes: readonly LabeledNode[], index: number): number {
  return nodes[index]?.weight ?? 0;
}

type Place = Omit<Label, 'isShown'> & { readonly box: Box };

function placesFor({ x, y, radius, text }: LabeledNode): Place[] {
  const length = widthOf(text);
  const off = radius + GAP;
  const baseline = y + LABEL_SIZE * 0.35;
  const onSide = { top: y - LABEL_SIZE * 0.6, bottom: y + LABEL_SIZE * 0.6 };
  const [left, right] = [x - length / 2, x + length / 2];
  const below = y + off + LABEL_SIZE * 0.8;
  const above = y - off;
  return [
    {
      x: x + off,
      y: baseline,
      anchor: 'start',
      box: { left: x + off, right: x + off + length, ...onSide },
    },
    {
      x: x - off,
      y: baseline,
      anchor: 'end',
      box: { left: x - off - length, right: x - off, ...onSide },
    },
    {
      x,
      y: below,
      anchor: 'middle',
      box: { left, right, top: y + off, bottom: y + off + LABEL_SIZE * 1.2 },
    },
    {
      x,
      y: above,
      anchor: 'middle',
      box: { left, right, top: above - LABEL_SIZE, bottom: above + 2 },
    },
  ];
}

/** Estimated for a wide system font; a label that turns out narrower does no harm. */
function widthOf(text: string): number {
  let width = 0;
  for (const character of text) width += LABEL_SIZE * (WIDE.test(character) ? 1.05 : 0.58);
  return width;
}

function circleBox({ x, y, radius }: LabeledNode): Box {
  return { left: x - radius, right: x + radius, top: y - radius, bottom: y + radius };
}

function overlap(box: Box, other: Box, own: LabeledNode): boolean {
  if (other.left === own.x - own.radius && other.top === own.y - own.radius) return false;
  return (
    box.left < other.right &&
    other.left < box.right &&
    box.top < other.bottom &&
    other.top < box.bottom
  );
}

/** On narrow screens, names are drawn up to a quarter longer. */
function isInside({ anchor, box }: Place, width: number, height: number): boolean {
  const more = (box.right - box.left) / (anchor === 'middle' ? 8 : 4);
  const left = anchor === 'start' ? box.left : box.left - more;
  const right = anchor === 'end' ? box.right : box.right + more;
  return left >= 0 && right <= width && box.top >= 2 && box.bottom <= height - 2;
}
