/** Searches for the highest rate that a service-level objective allows. */
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

export function byRate(attempts: readonly Attempt[]): Attempt[] {
  return attempts.toSorted((a, b) => a.report.rate_asked - b.report.rate_asked);
}
