/**
 * Positions the sovereigns of a graph with a deterministic force layout, so that the same graph looks the same on
 * every thread and after every restart.
 */
import {
  forceCollide,
  forceLink,
  forceManyBody,
  forceSimulation,
  forceX,
  forceY,
  type SimulationLinkDatum,
  type SimulationNodeDatum,
} from 'd3-force';

export interface Point {
  readonly x: number;
  readonly y: number;
}

export interface GraphLayout {
  readonly width: number;
  readonly height: number;
  /** Positions of the nodes, in their order. */
  readonly positions: readonly Point[];
}

/** Beyond these limits a drawing shows less than a table, and its layout takes too long. */
export const MOST_DRAWN_NODES = 300;
export const MOST_DRAWN_TREATIES = 1500;

/** This many updates of nodes and springs take a few milliseconds. */
const STEPS_PER_SLICE = 1500;

const WIDTH = 1200;
const MARGIN = 48;

interface LayoutNode extends SimulationNodeDatum {
  readonly radius: number;
}

/** `links` are pairs of node indexes; `radii` are the radii of the nodes. */
export function* layoutGraph(
  radii: readonly number[],
  links: readonly (readonly [from: number, to: number])[],
): Generator<void, GraphLayout> {
  const height = heightFor(radii.length);
  const ticks = ticksFor(radii.length);
  const nodes: LayoutNode[] = radii.map((radius, index) => ({ ...onSpiral(index), radius }));
  const springs: SimulationLinkDatum<LayoutNode>[] = links
    .filter(([from, to]) => from !== to)
    .map(([source, target]) => ({ source, target }));
  const spacing = Math.sqrt((WIDTH * height) / Math.max(radii.length, 6));
  const simulation = forceSimulation(nodes)
    .randomSource(repeatable())
    .force('link', forceLink(springs).distance(spacing * 0.9))
    .force(
      'charge',
      forceManyBody<LayoutNode>()
        .strength(-spacing * 6)
        .theta(1.1)
        .distanceMax(spacing * 8),
    )
    .force(
      'collide',
      forceCollide<LayoutNode>(({ radius }) => radius + spacing * 0.14),
    )
    .force('x', forceX<LayoutNode>(0).strength(0.05))
    .force('y', forceY<LayoutNode>(0).strength(0.05 * (WIDTH / height)))
    .stop()
    .alphaDecay(1 - 0.001 ** (1 / ticks));
  const perSlice = Math.ceil(STEPS_PER_SLICE / (nodes.length + springs.length));
  for (let left = ticks; left > 0; left -= perSlice) {
    simulation.tick(Math.min(left, perSlice));
    if (left > perSlice) yield;
  }
  return { width: WIDTH, height, positions: fitted(nodes, height) };
}

function heightFor(count: number): number {
  if (count <= 2) return 260;
  if (count <= 8) return 440;
  return count <= 60 ? 640 : 860;
}

/** Large graphs get fewer steps, because more would take longer without improving the layout. */
function ticksFor(count: number): number {
  return count <= 60 ? 300 : 120;
}

const GOLDEN_ANGLE = Math.PI * (3 - Math.sqrt(5));

function onSpiral(index: number): Point {
  const radius = 24 * Math.sqrt(index + 0.5);
  return { x: radius * Math.cos(index * GOLDEN_ANGLE), y: radius * Math.sin(index * GOLDEN_ANGLE) };
}

/** A linear congruential generator (Numerical Recipes) with a fixed seed. */
function repeatable(): () => number {
  let state = 1;
  return () => {
    state = (Math.imul(1664525, state) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Scales the layout to the drawing, at most by a factor of two. */
function fitted(nodes: readonly LayoutNode[], height: number): Point[] {
  const xs = nodes.map(({ x = 0 }) => x);
  const ys = nodes.map(({ y = 0 }) => y);
  const across = spanOf(xs, WIDTH);
  const down = spanOf(ys, height);
  return nodes.map(({ x = 0, y = 0 }) => ({
    x: Math.round(WIDTH / 2 + (x - across.middle) * across.scale),
    y: Math.round(height / 2 + (y - down.middle) * down.scale),
  }));
}

function spanOf(values: readonly number[], room: number): { middle: number; scale: number } {
  const least = Math.min(...values, Number.POSITIVE_INFINITY);
  const most = Math.max(...values, Number.NEGATIVE_INFINITY);
  if (!Number.isFinite(least)) return { middle: 0, scale: 1 };
  const span = Math.max(most - least, 1);
  return { middle: (least + most) / 2, scale: Math.min(2, (room - 2 * MARGIN) / span) };
}
