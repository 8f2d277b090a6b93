/**
 * A drawing of how values changed: one level for each step, so that nothing is drawn that was not measured. The drawing
 * stretches to its place, so all text is outside of it.
 */
import { shownCount } from './counts.ts';
import { type Html, html } from './html.ts';

export interface Curve {
  readonly label: string;
  /** One value for each step; null where nothing was recorded. */
  readonly values: readonly (number | null)[];
  /** Curves with the same one share a scale, because their values can be compared. */
  readonly scale: string;
}

export interface ChartParts {
  readonly title: string;
  readonly curves: readonly Curve[];
  /** The steps in which something was decided. */
  readonly marked: readonly number[];
  /** The times below the drawing, at equal distances. */
  readonly times: readonly string[];
}

const WIDTH = 1000;
const HEIGHT = 100;

export function chart({ title, curves, marked, times }: ChartParts): Html {
  const steps = Math.max(...curves.map(({ values }) => values.length));
  const tops = new Map<string, number>();
  for (const { scale, values } of curves) {
    const largest = Math.max(...values.map((value) => value ?? 0));
    tops.set(scale, Math.max(tops.get(scale) ?? 1, largest));
  }
  const [first] = curves;
  return html`<figure class="chart" data-steps="${steps}">
<figcaption><strong>${title}</strong></figcaption>
<ul class="legend">${curves.map(legendItem)}</ul>
<svg class="plot" viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" aria-hidden="true">${gaps(first?.values ?? [], steps)}${marked.map((step) => mark(step, steps))}${curves.map((curve, index) => line(curve, index, steps, tops.get(curve.scale) ?? 1))}</svg>
<div class="chart-times" aria-hidden="true">${times.map((time) => html`<span>${time}</span>`)}</div>
</figure>
`;
}

function legendItem({ label, values }: Curve, index: number): Html {
  const known = values.filter((value) => value !== null);
  const newest = known.at(-1);
  const about =
    newest === undefined
      ? 'not recorded'
      : `${shownCount(newest)}, at most ${shownCount(Math.max(...known))}`;
  return html`<li class="curve-${index}"><svg viewBox="0 0 24 4" aria-hidden="true"><path d="M0 2H24"/></svg>${label}: ${about}</li>`;
}

/** Where nothing was recorded. */
function gaps(values: readonly (number | null)[], steps: number): Html[] {
  const found: Html[] = [];
  for (let start = 0; start < values.length; start += 1) {
    if (values[start] !== null) continue;
    let end = start;
    while (end < values.length && values[end] === null) end += 1;
    found.push(
      html`<rect class="gap" x="${x(start, steps)}" y="0" width="${x(end - start, steps)}" height="${HEIGHT}"/>`,
    );
    start = end;
  }
  return found;
}

function mark(step: number, steps: number): Html {
  const at = x(step + 0.5, steps);
  return html`<path class="mark" d="M${String(at)} 0V${String(HEIGHT)}"/>`;
}

function line({ values }: Curve, index: number, steps: number, top: number): Html {
  return html`<path class="curve-${index}" d="${pathOf(values, steps, top)}"/>`;
}

/** A small drawing of one series, without a scale. */
export function sparkline(values: readonly (number | null)[]): Html {
  const top = Math.max(1, ...values.map((value) => value ?? 0));
  return html`<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" aria-hidden="true"><path d="${pathOf(values, values.length, top)}"/></svg>`;
}

/** Levels of the same height are one line. */
function pathOf(values: readonly (number | null)[], steps: number, top: number): string {
  let path = '';
  for (const [step, value] of values.entries()) {
    const before = values[step - 1] ?? null;
    if (value === null) continue;
    if (before === null) path += `M${x(step, steps)} ${y(value, top)}`;
    else if (value !== before) path += `V${y(value, top)}`;
    if (value !== values[step + 1]) path += `H${x(step + 1, steps)}`;
  }
  return path;
}

function y(value: number, top: number): number {
  return Math.round(HEIGHT - 1 - (value / top) * (HEIGHT - 4));
}

function x(step: number, steps: number): number {
  return Math.round((step / steps) * WIDTH);
}
