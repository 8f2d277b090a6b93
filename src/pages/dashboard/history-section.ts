/** The history on the dashboard [core-4-22]: drawings, what was decided, and, if asked for, all numbers. */
import { shownCount } from '../../base/counts.ts';
import { displayTime, formatInstant } from '../../base/timestamp.ts';
import { HISTORY_RANGE_NAMES } from '../../protocol/api/pages.ts';
import type { History, HistoryStep, SeriesName } from '../../protocol/rows/history.ts';
import { type Html, html, NO_HTML } from '../ui/html.ts';
import { emptyState } from '../ui/parts.ts';

export type HistoryRange = (typeof HISTORY_RANGE_NAMES)[number];

interface Range {
  readonly hours: number;
  readonly step: HistoryStep;
  readonly words: string;
}

export const HISTORY_RANGES = {
  '1h': { hours: 1, step: '1m', words: '1 hour' },
  '24h': { hours: 24, step: '15m', words: '24 hours' },
  '7d': { hours: 168, step: '1h', words: '7 days' },
  '90d': { hours: 2160, step: '1d', words: '90 days' },
} as const satisfies Record<HistoryRange, Range>;

const REFUSED = [
  'refused_400',
  'refused_401',
  'refused_403',
  'refused_404',
  'refused_409',
  'refused_429',
  'refused_other',
] as const satisfies SeriesName[];

const DECISIONS = {
  policies_activated: 'policy activated',
  operator_keys_added: 'operator key added',
  operator_keys_revoked: 'operator key revoked',
  restores: 'state restored',
  authority_keys_activated: 'authority key replaced',
} as const satisfies Partial<Record<SeriesName, string>>;

export const DRAWN_SERIES: readonly SeriesName[] = [
  'heartbeats',
  'active_nodes',
  'joins',
  'renewals',
  'revocations',
  ...REFUSED,
  'failed',
  'heartbeat_time',
  'silent_nodes',
  'unhealthy_nodes',
  ...(Object.keys(DECISIONS) as (keyof typeof DECISIONS)[]),
];

export interface HistoryView {
  readonly range: HistoryRange;
  /** Whether it begins with what was recorded first: a new authority has nothing to show of most of a day. */
  readonly isTrimmed?: boolean;
  /** Whether all numbers are below the drawings. */
  readonly hasNumbers: boolean;
}

export type DrawnHistory = ReturnType<typeof drawnHistory>;

function fromFirstRecord(history: History): History {
  const { recorded_minutes: recorded, series, from, step_seconds: seconds } = history;
  const first = Math.max(
    0,
    recorded.findIndex((minutes) => minutes > 0),
  );
  return {
    ...history,
    from: formatInstant(Date.parse(from) + first * seconds * 1000),
    recorded_minutes: recorded.slice(first),
    series: series.map((row) => ({
      ...row,
      ...(row.count !== undefined && { count: row.count.slice(first) }),
      ...(row.mean !== undefined && { mean: row.mean.slice(first) }),
      ...(row.p95 !== undefined && { p95: row.p95.slice(first) }),
    })),
  };
}

/** `authority` is where the links lead, for pages that it does not serve itself. */
export function drawnHistory(view: HistoryView, history: History | null, authority = '.') {
  const sparks = (history?.series ?? []).map(({ name, count, mean }) => {
    return [name, sparkline(mean ?? count ?? [])] as const;
  });
  return {
    section: historySection(view, history, authority),
    /** The lines of numbers, by series. */
    sparks: new Map(sparks),
  };
}

/** `history` is null if the authority could not be asked. */
function historySection(view: HistoryView, history: History | null, authority: string): Html {
  return html`<section class="section" id="history" aria-labelledby="history-heading">
<div class="section-head"><h2 id="history-heading">History</h2>${rangeLinks(view.range, authority)}</div>
${history === null ? emptyState('The history cannot be read at the moment.') : drawings(view, history, authority)}</section>`;
}

function rangeLinks(range: HistoryRange, authority: string): Html {
  const links = HISTORY_RANGE_NAMES.map((name) => {
    const current = name === range ? html` aria-current="true"` : NO_HTML;
    return html`<li><a href="${authority}/dashboard?range=${name}"${current}>${HISTORY_RANGES[name].words}</a></li>`;
  });
  return html`<nav aria-label="Time of the history"><ul class="ranges">${links}</ul></nav>`;
}

function drawings(view: HistoryView, all: History, authority: string): Html {
  const { range, hasNumbers, isTrimmed = false } = view;
  const history = isTrimmed ? fromFirstRecord(all) : all;
  const { words } = HISTORY_RANGES[range];
  const steps = stepsOf(history);
  const panels = panelsOf(history);
  const decisions = decisionsIn(history, steps);
  const marked = [...new Set(decisions.map(({ step }) => step))];
  const times = timesBelow(range, steps);
  const numbersOf = isTrimmed ? '' : `range=${range}&`;
  return html`<div class="charts">${panels.map(({ title, curves }) => chart({ title, curves, marked, times }))}</div>${decisionList(decisions)}${
    hasNumbers
      ? numbers(
          history,
          steps,
          panels.flatMap(({ curves }) => curves),
        )
      : NO_HTML
  }<p class="small muted">${hasNumbers ? NO_HTML : html`<a href="${authority}/dashboard?${numbersOf}numbers=shown#history-numbers">Numbers of the last ${words.replace(/^1 /, '')}</a>. `}Raw data: <a href="${authority}/history.json?series=heartbeats,active_nodes">history.json</a>. Gray areas were not recorded. All times are in UTC.</p>`;
}

function panelsOf({ series, recorded_minutes: recorded }: History) {
  const found = new Map(series.map((row) => [row.name, row]));
  const counts = (name: SeriesName) => found.get(name)?.count ?? [];
  const means = (name: SeriesName) => found.get(name)?.mean ?? [];
  const curve = (label: string, values: Curve['values']) => ({ label, values });
  const refused = recorded.map((minutes, step) =>
    minutes === 0 ? null : REFUSED.reduce((sum, name) => sum + (counts(name)[step] ?? 0), 0),
  );
  const beats = counts('heartbeats').map((count, step) =>
    count === null ? null : Math.round(count / (recorded[step] || 1)),
  );
  const times = (found.get('heartbeat_time')?.p95 ?? []).map((microseconds) =>
    microseconds === null ? null : Math.round(microseconds / 10) / 100,
  );
  return [
    { title: 'Heartbeats', curves: [curve('Heartbeats a minute', beats)] },
    {
      title: 'Nodes',
      curves: [
        curve('Active nodes', means('active_nodes')),
        curve('Silent nodes', means('silent_nodes')),
        curve('Unwell nodes', means('unhealthy_nodes')),
      ],
    },
    {
      title: 'Joins, renewals and revocations',
      curves: [
        curve('Joins', counts('joins')),
        curve('Renewals', counts('renewals')),
        curve('Revocations', counts('revocations')),
      ],
    },
    {
      title: 'Refusals',
      curves: [curve('Refused requests', refused), curve('Failed requests', counts('failed'))],
    },
    {
      title: 'Time of a heartbeat',
      curves: [curve('95th percentile (ms)', times)],
    },
  ];
}

/** The beginnings of the steps, milliseconds since the epoch. */
function stepsOf({ from, step_seconds, recorded_minutes }: History): number[] {
  const start = Date.parse(from);
  return recorded_minutes.map((_, step) => start + step * step_seconds * 1000);
}

interface Decision {
  readonly step: number;
  readonly at: number;
  readonly text: string;
}

function decisionsIn({ series }: History, steps: readonly number[]): Decision[] {
  return series
    .flatMap(({ name, count = [] }) => {
      const what = (DECISIONS as Partial<Record<SeriesName, string>>)[name];
      if (what === undefined) return [];
      return count.flatMap((times, step) =>
        times === null || times === 0
          ? []
          : [{ step, at: steps[step] ?? 0, text: times === 1 ? what : `${what}, ${times} times` }],
      );
    })
    .toSorted((a, b) => a.at - b.at);
}

const MOST_DECISIONS = 12;

function decisionList(decisions: readonly Decision[]): Html {
  if (decisions.length === 0) return NO_HTML;
  return html`<p class="small muted">Marked lines show when something was decided${decisions.length > MOST_DECISIONS ? '; the newest of them' : ''}:</p>
<ol class="decisions small">${decisions
    .slice(-MOST_DECISIONS)
    .map(({ at, text }) => html`<li>${timeOf(at)}: ${text}</li>`)}</ol>`;
}

/** All that is drawn; also for the values under the pointer. */
function numbers(
  { recorded_minutes: recorded }: History,
  steps: readonly number[],
  curves: readonly Curve[],
): Html {
  return html`<div class="numbers" tabindex="0" role="region" aria-labelledby="history-caption">
<table id="history-numbers">
<caption id="history-caption">One row for each step, with the time (UTC) at which it begins. A dash stands for what was not recorded.</caption>
<thead><tr><th scope="col">From</th>${curves.map(({ label }) => html`<th scope="col">${label}</th>`)}<th scope="col">Recorded minutes</th></tr></thead>
<tbody>${steps.map(
    (at, step) =>
      html`<tr><th scope="row">${timeOf(at)}</th>${curves.map(
        ({ values }) => html`<td>${shown(values[step])}</td>`,
      )}<td>${shown(recorded[step])}</td></tr>`,
  )}</tbody>
</table>
</div>`;
}

function shown(value: number | null | undefined): string {
  return value === null || value === undefined ? '–' : shownCount(value);
}

/** A date stands for a day, so seven days have seven. */
function timesBelow(range: HistoryRange, steps: readonly number[]): string[] {
  const isDay = HISTORY_RANGES[range].hours <= 24;
  const length = range === '7d' ? 7 : 4;
  return Array.from({ length }, (_, place) => {
    const at = steps[Math.floor((place * steps.length) / length)] ?? 0;
    const text = timeOf(at);
    return isDay ? text.slice(11, 16) : text.slice(5, 10);
  });
}

/** Such as `2027-06-02 12:00`. */
function timeOf(at: number): string {
  return displayTime(formatInstant(at)).slice(0, 16);
}

/**
 * A drawing of how values changed: one level for each step, so that nothing is drawn that was not measured. The drawing
 * stretches to its place, so all text is outside of it.
 */

interface Curve {
  readonly label: string;
  /** One value for each step; null where nothing was recorded. */
  readonly values: readonly (number | null)[];
}

interface ChartParts {
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

function chart({ title, curves, marked, times }: ChartParts): Html {
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
function sparkline(all: readonly (number | null)[]): Html {
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
