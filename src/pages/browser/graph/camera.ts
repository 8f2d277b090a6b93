/** The view of a figure's drawing. Points and distances are in screen pixels. */
export type Camera = ReturnType<typeof cameraOn>;

/** Below this scale, in pixels per canvas unit, names in the drawing are illegible. */
const READABLE = 0.58;
/** Space for names around the sovereigns that a narrow screen shows first, in canvas units. */
const MARGIN = 60;
/** Down to this scale names keep their size if none is crowded; otherwise they would cover each other. */
const SMALLEST_NAMES = 0.8;
/** From this scale on there is room for all names. */
const ROOM_FOR_NAMES = 2.5;

interface Shot {
  readonly picture: SVGSVGElement;
  readonly canvas: Canvas;
  readonly view: View;
}

export function cameraOn(figure: HTMLElement) {
  /** Null until the reader has moved the drawing. */
  let chosen: View | null = null;

  /** Null while the drawing has no size. */
  function shot(): Shot | null {
    const picture = figure.querySelector<SVGSVGElement>('.graph-picture');
    const canvas = picture === null ? null : canvasOf(picture);
    if (picture === null || canvas === null) return null;
    return { picture, canvas, view: within(chosen ?? openingView(picture, canvas), canvas) };
  }

  function refresh(): void {
    const now = shot();
    if (now !== null) show(figure, now);
  }

  function change(next: (now: Shot) => View): boolean {
    const before = shot();
    if (before === null) return false;
    const view = within(next(before), before.canvas);
    if (isSame(view, before.view)) return false;
    chosen = view;
    refresh();
    return true;
  }

  return {
    /** Applies the view again after the drawing was replaced or resized. */
    refresh,
    /** Zooms around the point, by default the focused sovereign or the center. Returns whether anything changed. */
    zoom: (factor: number, at?: Point): boolean =>
      change(({ picture, canvas, view }) => {
        const focused = picture.querySelector('.node:focus');
        const point =
          at !== undefined
            ? onCanvas(picture, canvas, at)
            : focused !== null
              ? seenAt(view, placeOf(focused))
              : middleOf(canvas);
        return zoomed(view, factor, point);
      }),
    move: (dx: number, dy: number): boolean =>
      change(({ canvas: { pixels }, view: { scale, x, y } }) => ({
        scale,
        x: x + dx / pixels,
        y: y + dy / pixels,
      })),
    showAll: () => change(() => WHOLE),
    /** Brings a sovereign into view. Returns whether it was out of view. */
    reveal: (node: Element): boolean => {
      const place = placeOf(node);
      return change(({ canvas, view }) =>
        isShown(view, place, canvas) ? view : centered(view.scale, place, canvas),
      );
    },
  };
}

function canvasOf(picture: SVGSVGElement): Canvas | null {
  const { width, height } = picture.viewBox.baseVal;
  const room = picture.getBoundingClientRect();
  const pixels = Math.min(room.width / width, room.height / height);
  if (!(pixels > 0)) return null;
  return {
    width,
    height,
    pixels,
    shownWidth: room.width / pixels,
    shownHeight: room.height / pixels,
  };
}

function onCanvas(picture: SVGSVGElement, { width, height, pixels }: Canvas, at: Point): Point {
  const room = picture.getBoundingClientRect();
  return {
    x: width / 2 + (at.x - room.left - room.width / 2) / pixels,
    y: height / 2 + (at.y - room.top - room.height / 2) / pixels,
  };
}

function middleOf({ width, height }: Canvas): Point {
  return { x: width / 2, y: height / 2 };
}

/** The whole drawing; on a narrow screen where its names do not fit, a legible part of it around its subjects. */
function openingView(picture: SVGSVGElement, canvas: Canvas): View {
  if (canvas.pixels >= READABLE || haveRoom(picture, canvas)) return WHOLE;
  const subjects = subjectsOf(picture).map(placeOf);
  return framing(subjects.length === 0 ? [middleOf(canvas)] : subjects, canvas, {
    closest: READABLE / canvas.pixels,
    margin: MARGIN,
  });
}

/** The scales, in pixels per canvas unit, at which names were measured last: a picture that was moved is not the whole. */
const measuredAt = new WeakMap<SVGSVGElement, number>();

/** Whether all names, in their full size, fit into the whole drawing without touching. */
function haveRoom(picture: SVGSVGElement, { pixels }: Canvas): boolean {
  if (measuredAt.get(picture) === pixels) return picture.matches('.roomy');
  measuredAt.set(picture, pixels);
  picture.querySelector('.scene')?.removeAttribute('transform');
  const { left, right } = picture.getBoundingClientRect();
  picture.style.setProperty('--closeness', String(pixels));
  const names = [...picture.querySelectorAll('.node text')].map((name) =>
    name.getBoundingClientRect(),
  );
  const fit = names.every(
    (a, index) =>
      a.left >= left &&
      a.right <= right &&
      !names
        .slice(index + 1)
        .some((b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom),
  );
  picture.classList.toggle('roomy', fit);
  return fit;
}

/** The selected sovereign, else those of the path or the search, else this authority. */
function subjectsOf(picture: SVGSVGElement): Element[] {
  const [chosen = []] = ['.selected', '.lit', '.own']
    .map((subject) => [...picture.querySelectorAll(`.node${subject}`)])
    .filter(({ length }) => length > 0);
  return chosen;
}

/** The position of a sovereign in the drawing. */
function placeOf(node: Element): Point {
  const dot = node.querySelector<SVGCircleElement>('.dot');
  return { x: dot?.cx.baseVal.value ?? 0, y: dot?.cy.baseVal.value ?? 0 };
}

function show(figure: HTMLElement, { picture, canvas, view: { scale, x, y } }: Shot): void {
  const size = scale * canvas.pixels;
  picture
    .querySelector('.scene')
    ?.setAttribute('transform', `translate(${x} ${y}) scale(${scale})`);
  // Names keep their size on the screen, so zooming in makes room for more of them.
  const least = picture.querySelector('.crowded') === null ? SMALLEST_NAMES : 1;
  const closeness = picture.matches('.roomy') ? size : Math.max(least, size);
  picture.style.setProperty('--closeness', String(closeness));
  picture.classList.toggle('close', size >= ROOM_FOR_NAMES);
  const shown = figure.querySelector('[data-zoom-shown]');
  const text = `${Math.round(scale * 100)}%`;
  if (shown !== null && shown.textContent !== text) shown.textContent = text;
}

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
