/** Shows the values under the pointer, and fetches all drawings again every minute. They are complete without it. */
import { fetchedPage } from './fetched-page.ts';
import { becomeInside } from './patch.ts';

/** A minute is recorded up to two seconds after it has ended. */
const EVERY_MS = 60_000;
const SPREAD_MS = 5000;

export function showHistory(): void {
  const place = document.getElementById('history');
  if (place === null) return;
  /** The page with the numbers of what is drawn, once somebody has pointed at it. */
  let numbers: Promise<Document | null> | null = null;
  let newest: Event | null = null;

  place.addEventListener('pointermove', async (event) => {
    newest = event;
    numbers ??= fetchedPage(withNumbers());
    const page = await numbers;
    if (newest === event) point(place, event, page);
  });
  place.addEventListener('pointerleave', () => {
    newest = null;
    clear(place);
  });
  setInterval(
    () =>
      setTimeout(async () => {
        if (await renew(place)) numbers = null;
      }, Math.random() * SPREAD_MS),
    EVERY_MS,
  );
}

function withNumbers(): string {
  const address = new URL(location.href);
  address.searchParams.set('numbers', 'shown');
  return address.href;
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

/** On failure, the next attempt follows in a minute. */
async function renew(place: HTMLElement): Promise<boolean> {
  if (document.hidden) return false;
  // Without an answer, the page says by itself that the connection is lost.
  const page = await fetchedPage(location.href, 'no-cache');
  const fresh = page?.getElementById('history');
  if (!page || !fresh) return false;
  becomeInside(place, fresh);
  const sparks = page.querySelectorAll('.spark');
  for (const [index, spark] of document.querySelectorAll('.spark').entries()) {
    spark.replaceChildren(...(sparks[index]?.childNodes ?? []));
  }
  return true;
}
