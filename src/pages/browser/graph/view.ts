/**
 * Lets the reader zoom and pan a drawn graph by keyboard, buttons, mouse and touch. Nothing is animated. (D3's zoom
 * would more than double the size of the script.)
 */
import { type Camera, cameraOn } from './camera.ts';
import { followPointers } from './pointers.ts';

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
