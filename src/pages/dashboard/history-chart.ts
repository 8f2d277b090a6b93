/**
 * A drawing of how values changed: one level for each step, so that nothing is drawn that was not measured. The drawing
 * stretches to its place, so all text is outside of it.
 */
import { shownCount } from '../../base/counts.ts';
import { type Html, html, NO_HTML } from '../ui/html.ts';

export interface Curve {
  readonly label: string;
  /** One value for each step; null where nothing was recorded. */
  readonly values: readonly (number | null)[];
}

export interface ChartParts {
  readonly title: string;
  /** They share the scale. */
  readonly curves: readonly Curve[];
  /** The steps in which something was decided. */
  readonly marked: readonly number[];
  /** The times below the drawing, at equal distances. */
  readonly times: readonly string[];
}

/** A level is about two pixels high. A drawing is as wide as it has steps. */
const HEIGHT = 60;

export function chart({ title, curves, marked, times }: ChartParts): Html {
  const steps = Math.max(...curves.map(({ values }) => values.length));
  const top = topOf(curves.flatMap(({ values }) => values));
  const [first] = curves;
  return html`<figure class="chart">
<figcaption><strong>${title}</strong></figcaption>
<ul class="legend">${curves.map(legendItem)}</ul>
<div class="scale"><span aria-hidden="true">${shownCount(top)}</span><svg class="plot"${shape(steps)}>${gaps(first?.values ?? [])}${marked.map(mark)}${curves.map((curve, index) => line(curve, index, top))}</svg><span aria-hidden="true">0</span></div>
<div class="chart-times" aria-hidden="true">${times.map((time) => html`<span>${time}</span>`)}</div>
</figure>`;
}

function topOf(values: readonly (number | null)[]): number {
  return Math.max(...values.map((value) => value ?? 0)) || 1;
}

function shape(steps: number): Html {
  return html` viewBox="0 0 ${steps} ${HEIGHT}" preserveAspectRatio="none" aria-hidden="true"`;
}

function legendItem({ label, values }: Curve, index: number): Html {
  const known = values.filter((value) => value !== null);
  const newest = known.at(-1);
  const about =
    newest === undefined
      ? 'not recorded'
      : `${shownCount(newest)}, at most ${shownCount(Math.max(...known))}`;
  return html`<li class="curve-${index}"><svg viewBox="0 0 24 4" aria-hidden="true"><path d="M0 2H24"/></svg>${label}: <span>${about}</span></li>`;
}

/** Where nothing was recorded. The last step is not over yet. */
function gaps(values: readonly (number | null)[]): Html[] {
  const found: Html[] = [];
  for (let start = 0; start < values.length - 1; start += 1) {
    if (values[start] !== null) continue;
    let end = start;
    while (end < values.length && values[end] === null) end += 1;
    found.push(html`<rect class="gap" x="${start}" width="${end - start}" height="${HEIGHT}"/>`);
    start = end;
  }
  return found;
}

function mark(step: number): Html {
  return html`<path class="mark" d="M${String(step + 0.5)} 0V${String(HEIGHT)}"/>`;
}

function line({ values }: Curve, index: number, top: number): Html {
  return html`<path class="curve-${index}" d="${pathOf(values, top)}"/>`;
}

/** A small drawing of one series, without a scale, from its first value on. */
export function sparkline(all: readonly (number | null)[]): Html {
  const first = all.findIndex((value) => value !== null);
  if (first === -1) return NO_HTML;
  const values = all.slice(first);
  return html`<svg${shape(values.length)}><path d="${pathOf(values, topOf(values))}"/></svg>`;
}

/** Levels of the same height are one line. Lengths are relative, because those recur. */
function pathOf(values: readonly (number | null)[], top: number): string {
  let path = '';
  let width = 0;
  let height = 0;
  for (const [step, value] of values.entries()) {
    if (value === null) continue;
    const level = y(value, top);
    const isNew = (values[step - 1] ?? null) === null;
    if (isNew) path += `M${step} ${level}`;
    else if (level !== height) path += `v${level - height}`;
    height = level;
    width += 1;
    const next = values[step + 1] ?? null;
    if (next !== null && y(next, top) === level) continue;
    path += `h${width}`;
    width = 0;
  }
  return path;
}

function y(value: number, top: number): number {
  return Math.round(HEIGHT - 1 - (value / top) * (HEIGHT - 3));
}
