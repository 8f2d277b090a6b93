/**
 * Lets the reader zoom and pan a drawn graph by keyboard, buttons, mouse and touch. Nothing is animated. (D3's zoom
 * would more than double the size of the script.)
 */
import { type Camera, cameraOn, type Point } from './camera.ts';

const STEP = 1.4;
/** In pixels. */
const STRIDE = 60;

export function moveInGraph(): void {
  const figure = document.querySelector<HTMLElement>('.graph.open');
  if (figure === null) return;
  const camera = operate(figure);

  const refresh = () => {
    camera.refresh();
    showFullScreen(figure);
  };

  keepPlaceOnTab();
  refresh();
  document.addEventListener('fullscreenchange', refresh);
  addEventListener('resize', refresh);
}

function operate(figure: HTMLElement): Camera {
  const camera = cameraOn(figure);
  followPointers(figure, camera);
  figure.addEventListener('keydown', (event) => {
    const { key, ctrlKey, metaKey, altKey } = event;
    if (ctrlKey || metaKey || altKey) return;
    if (pressed(key, figure, camera)) event.preventDefault();
  });
  figure.addEventListener('click', ({ target }) => {
    const button = target instanceof Element ? target.closest<HTMLElement>('[data-key-of]') : null;
    if (button !== null) pressed(button.dataset.keyOf ?? '', figure, camera);
  });
  figure.addEventListener('focusin', ({ target }) => {
    if (target instanceof Element && target.matches('.node') && camera.reveal(target)) {
      stayAt(target);
    }
  });
  return camera;
}

/** Returns whether the key was handled: a key that changes nothing is left to the page. */
function pressed(key: string, figure: HTMLElement, camera: Camera): boolean {
  switch (key) {
    case '+':
    case '=':
      return camera.zoom(STEP);
    case '-':
      return camera.zoom(1 / STEP);
    case '0':
      camera.showAll();
      return true;
    case 'ArrowLeft':
      return camera.move(STRIDE, 0);
    case 'ArrowRight':
      return camera.move(-STRIDE, 0);
    case 'ArrowUp':
      return camera.move(0, STRIDE);
    case 'ArrowDown':
      return camera.move(0, -STRIDE);
    case 'f':
    case 'F':
      toggleFullScreen(figure);
      return true;
    case 'Escape':
      leave();
      return true;
    default:
      return false;
  }
}

let top = 0;

function keepPlaceOnTab(): void {
  document.addEventListener('keydown', ({ key }) => {
    if (key === 'Tab') top = scrollY;
  });
}

/** Browsers scroll to where a sovereign was before it was brought into view, which may be far away. */
function stayAt(node: Element): void {
  scrollTo({ top, behavior: 'instant' });
  node.scrollIntoView({ block: 'nearest', behavior: 'instant' });
}

/** Leaves full screen first, then the drawing, so that the wheel scrolls the page again. */
function leave(): void {
  if (document.fullscreenElement !== null) void document.exitFullscreen();
  else if (
    document.activeElement instanceof HTMLElement ||
    document.activeElement instanceof SVGElement
  ) {
    document.activeElement.blur();
  }
}

function toggleFullScreen(figure: HTMLElement): void {
  if (document.fullscreenElement !== null) void document.exitFullscreen();
  else if (document.fullscreenEnabled) void figure.requestFullscreen();
}

function showFullScreen(figure: HTMLElement): void {
  const button = figure.querySelector<HTMLElement>('[data-key-of="f"]');
  if (button === null) return;
  button.hidden = !document.fullscreenEnabled;
  const text = document.fullscreenElement === figure ? 'Leave full screen' : 'Full screen';
  if (button.textContent !== text) button.textContent = text;
}

/** Shorter movements are clicks; in pixels. */
const DRAG_BEGINS = 4;
/** Doublings of the scale per pixel of wheel movement; a touchpad pinch sends small movements with Ctrl. */
const WHEEL_SPEED = 0.004;
const PINCH_SPEED = 0.015;
const FASTEST = 0.5;
const PIXELS_OF_MODES = [1, 16, 400] as const;

/** Dragging moves the drawing; two fingers and the wheel zoom. One finger up and down scrolls the page. */
function followPointers(figure: HTMLElement, camera: Camera): void {
  const pointers = new Map<number, Point>();
  let isDragging = false;
  let ending: ReturnType<typeof setTimeout> | undefined;

  function hold(event: PointerEvent): void {
    // A new press is not part of the previous drag, even if that drag has not ended yet.
    if (pointers.size === 0) endDrag();
    if (event.button === 0 && boxAt(event) !== null) pointers.set(event.pointerId, pointOf(event));
  }

  function drag(event: PointerEvent): void {
    const from = pointers.get(event.pointerId);
    if (from === undefined) return;
    const to = pointOf(event);
    const isFirst = !isDragging && pointers.size === 1;
    if (isFirst && Math.hypot(to.x - from.x, to.y - from.y) < DRAG_BEGINS) return;
    if (event.buttons === 0 || (isFirst && isScrolling(event, from) && !isFullScreen(figure))) {
      release(event);
      return;
    }
    isDragging = true;
    boxAt(event)?.setPointerCapture(event.pointerId);
    const before = gripOf(pointers);
    pointers.set(event.pointerId, to);
    const after = gripOf(pointers);
    camera.move(after.x - before.x, after.y - before.y);
    if (before.spread > 0) camera.zoom(after.spread / before.spread, after);
  }

  function release({ pointerId }: PointerEvent): void {
    pointers.delete(pointerId);
    // The click event of a drag must arrive before the drag ends.
    if (pointers.size === 0) ending = setTimeout(endDrag);
  }

  function endDrag(): void {
    clearTimeout(ending);
    isDragging = false;
  }

  figure.addEventListener('pointerdown', hold);
  figure.addEventListener('pointermove', drag);
  figure.addEventListener('pointerup', release);
  figure.addEventListener('pointercancel', release);
  figure.addEventListener('click', (event) => isDragging && event.preventDefault(), true);
  figure.addEventListener('dragstart', (event) => event.preventDefault());
  const first = { passive: false };
  figure.addEventListener(
    'touchmove',
    (event) => pointers.size > 1 && event.preventDefault(),
    first,
  );
  figure.addEventListener('wheel', (event) => turn(event, figure, camera), first);
}

/** One finger moving up or down scrolls the page. */
function isScrolling({ pointerType, clientX, clientY }: PointerEvent, from: Point): boolean {
  return pointerType === 'touch' && Math.abs(clientY - from.y) > Math.abs(clientX - from.x);
}

/** The wheel scrolls the page unless Ctrl is pressed or the focus is in the drawing. */
function turn(event: WheelEvent, figure: HTMLElement, camera: Camera): void {
  const box = boxAt(event);
  if (box === null) return;
  const isAsked = event.ctrlKey || event.metaKey;
  const isInside = box.contains(document.activeElement) || isFullScreen(figure);
  if (!isAsked && !isInside) return;
  const pixels = event.deltaY * (PIXELS_OF_MODES[event.deltaMode] ?? 1);
  const doublings = -pixels * (isAsked ? PINCH_SPEED : WHEEL_SPEED);
  const isChanged = camera.zoom(
    2 ** Math.min(Math.max(doublings, -FASTEST), FASTEST),
    pointOf(event),
  );
  if (isAsked || isChanged) event.preventDefault();
}

function isFullScreen(figure: HTMLElement): boolean {
  return document.fullscreenElement === figure;
}

function boxAt({ target }: Event): Element | null {
  return target instanceof Element ? target.closest('.graph-box') : null;
}

function pointOf({ clientX, clientY }: MouseEvent): Point {
  return { x: clientX, y: clientY };
}

/** The center of the pointers, and their spread around it. */
function gripOf(pointers: ReadonlyMap<number, Point>): Point & { readonly spread: number } {
  const points = [...pointers.values()];
  const mean = (values: readonly number[]) =>
    values.reduce((sum, each) => sum + each, 0) / points.length;
  const [x, y] = [mean(points.map((point) => point.x)), mean(points.map((point) => point.y))];
  return { x, y, spread: mean(points.map((point) => Math.hypot(point.x - x, point.y - y))) };
}
