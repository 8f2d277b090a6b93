/** The latency over the rate: as CSV, and drawn as SVG. */
import type { Attempt, Objective } from './find.ts';
import type { Percentile } from './latency.ts';

const DRAWN = [
  ['p50', 'p50', '#2a7f4f'],
  ['p99', 'p99', '#c9730a'],
  ['p999', 'p99.9', '#b3261e'],
] as const satisfies readonly (readonly [Percentile, string, string])[];

const SHOWN: readonly Percentile[] = ['p50', 'p90', 'p99', 'p999', 'p9999', 'max'];

export function byRate(attempts: readonly Attempt[]): Attempt[] {
  return attempts.toSorted((a, b) => a.report.rate_asked - b.report.rate_asked);
}

export function curveCsv(attempts: readonly Attempt[]): string {
  const latencies = SHOWN.map((percentile) => `${percentile}_ms`);
  const header = ['rate_asked', 'rate_reached', ...latencies, 'failed', 'holds'];
  const rows = byRate(attempts).map(({ report, miss }) => [
    report.rate_asked,
    report.rate_reached.toFixed(1),
    ...SHOWN.map((percentile) => report.latency_ms[percentile]),
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
