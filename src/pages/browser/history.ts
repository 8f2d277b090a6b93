/** Shows the values under the pointer. The drawings are complete without it. */
import { fetchedPage } from './live.ts';

export function showHistory(): void {
  const place = document.getElementById('history');
  if (place === null) return;
  /** The page with the numbers of what is drawn, once somebody has pointed at it. */
  let numbers: Promise<Document | null> | null = null;
  let drawn: string | null = null;
  let newest: Event | null = null;

  place.addEventListener('pointermove', async (event) => {
    newest = event;
    if (drawn !== place.textContent) {
      const link = place.querySelector<HTMLAnchorElement>('[href*="numbers"]');
      // The page that shows the numbers has no link to them.
      numbers = fetchedPage(link?.href ?? location.href);
    }
    drawn = place.textContent;
    const page = await numbers;
    if (newest === event) point(place, event, page);
  });
  place.addEventListener('pointerleave', () => {
    newest = null;
    clear(place);
  });
}

function point(place: HTMLElement, { target, clientX }: PointerEvent, page: Document | null): void {
  clear(place);
  const plot = target instanceof Element ? target.closest('.plot') : null;
  const rows = page?.querySelectorAll<HTMLTableRowElement>('#history-numbers tbody tr');
  if (!plot || !rows) return;
  const { left, width } = plot.getBoundingClientRect();
  const step = Math.floor(((clientX - left) / width) * rows.length);
  const [time, ...values] = [...(rows[step]?.cells ?? [])].map(({ textContent }) => textContent);
  // The columns are the curves of all drawings, one after another.
  for (const [index, curve] of place.querySelectorAll<HTMLElement>('.legend li').entries())
    curve.dataset.value = values[index] ?? '';
  place.style.cssText = `--at: ${(100 * (step + 0.5)) / rows.length}%; --time: "${time}"`;
}

function clear(place: Element): void {
  place.removeAttribute('style');
}
