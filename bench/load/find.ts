/** Searches for the highest rate that a service-level objective allows, and draws the latency over the rate. */
import { PERCENTILE_NAMES, type Percentile } from './latency.ts';
import type { RunReport } from './run-report.ts';

export interface Objective {
  readonly percentile: Percentile;
  readonly milliseconds: number;
}

export interface Attempt {
  readonly report: RunReport;
  /** Why the objective is missed; null if it holds. */
  readonly miss: string | null;
}

export interface Found {
  /** The highest rate that held; null if none did. */
  readonly rate: number | null;
  /** True if the search ended because the generator, not the service, was at its limit. */
  readonly endedByGenerator: boolean;
  readonly attempts: readonly Attempt[];
}

export interface Search {
  readonly objectives: readonly Objective[];
  readonly from: number;
  readonly highest: number;
}

/** The search ends when the rates that hold and do not hold differ by less than this. */
const PRECISION = 0.05;
const LOWEST_RATE = 1;
/** A rate holds only if this share of it is reached, and no more than this share of requests fails. */
const REACHED = 0.99;
const FAILED = 0.001;

/** Parses `p50=5ms,p99=50ms`; null for other text. */
export function parseObjectives(text: string): Objective[] | null {
  const objectives = text.split(',').map((part) => {
    const [, name = '', value, unit] = /^(p?[a-z\d.]+)=(\d+(?:\.\d+)?)(ms|s)$/.exec(part) ?? [];
    const percentile = percentileNamed(name);
    if (percentile === null || value === undefined) return null;
    return { percentile, milliseconds: Number(value) * (unit === 's' ? 1000 : 1) };
  });
  return objectives.every((each) => each !== null) ? objectives : null;
}

/** `p99.9` and `p999` are the same. */
function percentileNamed(name: string): Percentile | null {
  const plain = name.replace('.', '');
  return PERCENTILE_NAMES.find((each) => each === plain) ?? null;
}

export function missOf(report: RunReport, objectives: readonly Objective[]): string | null {
  const { accepted, due, rate_asked, rate_reached, latency_ms } = report;
  for (const { percentile, milliseconds } of objectives) {
    const measured = latency_ms[percentile];
    if (measured > milliseconds) {
      return `${percentile} is ${measured.toFixed(1)} ms instead of ${milliseconds} ms`;
    }
  }
  if (due - accepted > due * FAILED) return `${due - accepted} of ${due} requests failed`;
  if (rate_reached < rate_asked * REACHED) return `${rate_reached.toFixed(0)}/s were reached`;
  return null;
}

export async function findRate(
  { objectives, from, highest }: Search,
  measureAt: (rate: number) => Promise<RunReport>,
): Promise<Found> {
  const attempts: Attempt[] = [];
  let holding: number | null = null;
  let missing: number | null = null;
  let rate = Math.min(from, highest);
  for (;;) {
    const report = await measureAt(rate);
    const miss = missOf(report, objectives);
    attempts.push({ report, miss });
    if (miss === null) holding = rate;
    else if (report.generator.was_at_limit)
      return { rate: holding, endedByGenerator: true, attempts };
    else missing = rate;
    const next = nextRate(holding, missing, highest);
    if (next === null) return { rate: holding, endedByGenerator: false, attempts };
    rate = next;
  }
}

/** Doubles or halves until one rate holds and another does not, then bisects. */
function nextRate(holding: number | null, missing: number | null, highest: number): number | null {
  if (missing === null) {
    return holding === null || holding >= highest ? null : Math.min(holding * 2, highest);
  }
  if (holding === null) return missing <= LOWEST_RATE ? null : Math.max(missing / 2, LOWEST_RATE);
  return missing - holding < missing * PRECISION ? null : Math.round((holding + missing) / 2);
}

const DRAWN = [
  ['p50', 'p50', '#2a7f4f'],
  ['p99', 'p99', '#c9730a'],
  ['p999', 'p99.9', '#b3261e'],
] as const satisfies readonly (readonly [Percentile, string, string])[];

export function byRate(attempts: readonly Attempt[]): Attempt[] {
  return attempts.toSorted((a, b) => a.report.rate_asked - b.report.rate_asked);
}

export function curveCsv(attempts: readonly Attempt[]): string {
  const latencies = PERCENTILE_NAMES.map((percentile) => `${percentile}_ms`);
  const header = ['rate_asked', 'rate_reached', ...latencies, 'failed', 'holds'];
  const rows = byRate(attempts).map(({ report, miss }) => [
    report.rate_asked,
    report.rate_reached.toFixed(1),
    ...PERCENTILE_NAMES.map((percentile) => report.latency_ms[percentile]),
    report.due - report.accepted,
    miss === null,
  ]);
  return [header, ...rows].map((row) => `${row.join(',')}\n`).join('');
}

const WIDTH = 760;
const HEIGHT = 420;
const LEFT = 85;
const RIGHT = 70;
const TOP = 20;
const BOTTOM = 50;

/** Rates are linear, latencies logarithmic. */
export function curveSvg(attempts: readonly Attempt[], objectives: readonly Objective[]): string {
  const points = byRate(attempts).map(({ report }) => report);
  const highest = Math.max(...points.map((point) => point.rate_asked));
  const values = points.flatMap((point) => DRAWN.map(([name]) => point.latency_ms[name]));
  const limits = objectives.map(({ milliseconds }) => milliseconds);
  const positive = [...values, ...limits].filter((value) => value > 0);
  const low = Math.floor(Math.log10(Math.min(...positive)));
  const high = Math.max(Math.ceil(Math.log10(Math.max(...positive))), low + 1);
  const x = (rate: number) => LEFT + (rate / highest) * (WIDTH - LEFT - RIGHT);
  const y = (ms: number) => {
    const share = (Math.log10(Math.max(ms, 10 ** low)) - low) / (high - low);
    return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM);
  };
  const text = (at: readonly [number, number], anchor: string, words: string, color = '#555') =>
    `<text x="${at[0].toFixed(1)}" y="${at[1].toFixed(1)}" text-anchor="${anchor}" fill="${color}">${words}</text>`;
  const level = (ms: number, style: string) =>
    `<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${y(ms).toFixed(1)}" y2="${y(ms).toFixed(1)}" ${style}/>`;

  const decades = Array.from({ length: high - low + 1 }, (_, index) => 10 ** (low + index));
  const rates = [0, 0.25, 0.5, 0.75, 1].map((share) => share * highest);
  const parts = [
    ...decades.flatMap((ms) => [
      level(ms, 'stroke="#ddd"'),
      text([LEFT - 8, y(ms) + 4], 'end', `${ms} ms`),
    ]),
    ...rates.map((rate) => text([x(rate), HEIGHT - BOTTOM + 20], 'middle', rate.toFixed(0))),
    text([WIDTH / 2, HEIGHT - 10], 'middle', 'requests per second'),
    ...limits.map((ms) => level(ms, 'stroke="#888" stroke-dasharray="5 4"')),
    ...DRAWN.flatMap(([name, label, color]) => {
      const line = points.map((point) => {
        return `${x(point.rate_asked).toFixed(1)},${y(point.latency_ms[name]).toFixed(1)}`;
      });
      const last = y(points.at(-1)?.latency_ms[name] ?? 0) + 4;
      return [
        `<polyline points="${line.join(' ')}" fill="none" stroke="${color}" stroke-width="2"/>`,
        text([WIDTH - RIGHT + 8, last], 'start', label, color),
      ];
    }),
  ];
  const size = `viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}"`;
  const font = 'font-family="sans-serif" font-size="13"';
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size} ${font}>\n<rect width="100%" height="100%" fill="#fff"/>\n${parts.join('\n')}\n</svg>\n`;
}
