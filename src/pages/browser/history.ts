/** Shows the values under the pointer, and fetches all drawings again every minute. They are complete without it. */
import { fetchedPage } from './fetched-page.ts';
import { becomeInside } from './patch.ts';

/** A minute is recorded up to two seconds after it has ended. */
const EVERY_MS = 60_000;
const SPREAD_MS = 5000;
const SVG = 'http://www.w3.org/2000/svg';

export function showHistory(): void {
  const place = document.getElementById('history');
  if (place === null) return;
  place.addEventListener('pointermove', (event) => point(place, event));
  place.addEventListener('pointerleave', () => clear(place));
  setInterval(() => setTimeout(() => void renew(place), Math.random() * SPREAD_MS), EVERY_MS);
}

function point(place: HTMLElement, { target, clientX }: PointerEvent): void {
  const plot = target instanceof Element ? target.closest<SVGSVGElement>('.plot') : null;
  clear(place);
  if (plot === null) return;
  const rows = place.querySelectorAll<HTMLTableRowElement>('#history-numbers tbody tr');
  const { left, width } = plot.getBoundingClientRect();
  const step = Math.floor(((clientX - left) / width) * rows.length);
  const row = rows[step];
  if (row === undefined) return;
  const across = String(((step + 0.5) / rows.length) * plot.viewBox.baseVal.width);
  for (const [index, chart] of [...place.querySelectorAll('.chart')].entries()) {
    const cross = document.createElementNS(SVG, 'path');
    cross.setAttribute('class', 'cross');
    cross.setAttribute('d', `M${across} 0V${plot.viewBox.baseVal.height}`);
    chart.querySelector('.plot')?.append(cross);
    const title = chart.querySelector<HTMLElement>('figcaption');
    if (title !== null) title.dataset.values = valuesOf(row, columnsOf(place, index));
  }
}

/** The columns of a drawing in the table: those of the drawings are one after another, after the time. */
function columnsOf(place: HTMLElement, index: number): readonly number[] {
  const lengths = [...place.querySelectorAll('.chart')].map(
    (chart) => chart.querySelectorAll('.legend li').length,
  );
  const start = 1 + lengths.slice(0, index).reduce((sum, length) => sum + length, 0);
  return Array.from({ length: lengths[index] ?? 0 }, (_, offset) => start + offset);
}

function valuesOf(row: HTMLTableRowElement, columns: readonly number[]): string {
  const values = columns.map((column) => row.cells[column]?.textContent);
  return `${row.cells[0]?.textContent}: ${values.join(' · ')}`;
}

function clear(place: HTMLElement): void {
  for (const cross of place.querySelectorAll('.cross')) cross.remove();
  for (const title of place.querySelectorAll<HTMLElement>('figcaption'))
    delete title.dataset.values;
}

/** On failure, the next attempt follows in a minute. */
async function renew(place: HTMLElement): Promise<void> {
  if (document.hidden) return;
  // Without an answer, the page says by itself that the connection is lost.
  const page = await fetchedPage(location.href, 'no-cache');
  const fresh = page?.getElementById('history');
  if (!page || !fresh) return;
  becomeInside(place, fresh);
  const sparks = page.querySelectorAll('.spark');
  for (const [index, spark] of document.querySelectorAll('.spark').entries()) {
    spark.replaceChildren(...(sparks[index]?.childNodes ?? []));
  }
}
