/** The transform of a drawing: scaled, then moved, in canvas units. */
export interface View {
  /** 1 shows the whole drawing. */
  readonly scale: number;
  readonly x: number;
  readonly y: number;
}

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** The area of a drawing. The element may show more around it where their proportions differ. */
export interface Canvas {
  readonly width: number;
  readonly height: number;
  readonly shownWidth: number;
  readonly shownHeight: number;
  /** Screen pixels per canvas unit. */
  readonly pixels: number;
}

export const WHOLE: View = { scale: 1, x: 0, y: 0 };

const CLOSEST = 12;

/** Keeps the point in its place. */
export function zoomed({ scale, x, y }: View, factor: number, at: Point): View {
  const next = Math.min(Math.max(scale * factor, 1), CLOSEST);
  const by = next / scale;
  return { scale: next, x: at.x - (at.x - x) * by, y: at.y - (at.y - y) * by };
}

/** Centers a point of the drawing. */
export function centered(scale: number, at: Point, { width, height }: Canvas): View {
  return { scale, x: width / 2 - at.x * scale, y: height / 2 - at.y * scale };
}

/** Shows all of the points with a margin around them, at the largest scale that is wanted and possible. */
export function framing(
  points: readonly Point[],
  canvas: Canvas,
  { closest, margin }: { readonly closest: number; readonly margin: number },
): View {
  const [left, right] = rangeOf(points.map(({ x }) => x));
  const [top, bottom] = rangeOf(points.map(({ y }) => y));
  const fitting = Math.min(
    canvas.shownWidth / (right - left + 2 * margin),
    canvas.shownHeight / (bottom - top + 2 * margin),
  );
  const middle = { x: (left + right) / 2, y: (top + bottom) / 2 };
  return centered(Math.max(1, Math.min(closest, fitting)), middle, canvas);
}

function rangeOf(values: readonly number[]): [least: number, most: number] {
  return [Math.min(...values), Math.max(...values)];
}

/** The nearest view without empty space around a drawing that is larger than the canvas. */
export function within({ scale, x, y }: View, canvas: Canvas): View {
  const { width, height, shownWidth, shownHeight } = canvas;
  return {
    scale,
    x: startWithin(x, scale * width, width, shownWidth),
    y: startWithin(y, scale * height, height, shownHeight),
  };
}

function startWithin(start: number, length: number, room: number, shown: number): number {
  if (length <= shown) return (room - length) / 2;
  const latest = (room - shown) / 2;
  return Math.min(Math.max(start, latest + shown - length), latest);
}

/** The position on the canvas of a point of the drawing. */
export function seenAt({ scale, x, y }: View, { x: left, y: top }: Point): Point {
  return { x: x + left * scale, y: y + top * scale };
}

/** Whether a point of the drawing is shown. */
export function isShown(view: View, at: Point, canvas: Canvas): boolean {
  const { x, y } = seenAt(view, at);
  const isIn = (place: number, room: number, shown: number) =>
    Math.abs(place - room / 2) <= shown / 2;
  return isIn(x, canvas.width, canvas.shownWidth) && isIn(y, canvas.height, canvas.shownHeight);
}

export function isSame(a: View, b: View): boolean {
  return a.scale === b.scale && a.x === b.x && a.y === b.y;
}
