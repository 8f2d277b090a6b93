/** Latencies as an HDR histogram: exact to 0.1 %, in constant memory, and readable by other tools when encoded. */
import {
  build,
  decodeFromCompressedBase64,
  encodeIntoCompressedBase64,
  type Histogram,
} from 'hdr-histogram-js';

export const PERCENTILE_NAMES = ['p50', 'p90', 'p99', 'p999', 'p9999', 'max'] as const;

export type Percentile = (typeof PERCENTILE_NAMES)[number];

const PERCENTILES = { p50: 50, p90: 90, p99: 99, p999: 99.9, p9999: 99.99, max: 100 };

/** Milliseconds. */
export type LatencySummary = Readonly<Record<Percentile, number>>;

export interface Latencies {
  record(milliseconds: number): void;
  count(): number;
  at(percentile: Percentile): number;
  summary(): LatencySummary;
  /** In the compressed base64 format of HdrHistogram. */
  encoded(): string;
}

const LONGEST_MICROS = 600_000_000;

export function newLatencies(): Latencies {
  const histogram = build({
    lowestDiscernibleValue: 1,
    highestTrackableValue: LONGEST_MICROS,
    numberOfSignificantValueDigits: 3,
  });
  return latenciesIn(histogram);
}

/** Null if the text is not an encoded histogram. */
export function readLatencies(encoded: string): Latencies | null {
  try {
    return latenciesIn(decodeFromCompressedBase64(encoded));
  } catch {
    return null;
  }
}

function latenciesIn(micros: Histogram): Latencies {
  const at = (percentile: Percentile) =>
    micros.totalCount === 0 ? 0 : micros.getValueAtPercentile(PERCENTILES[percentile]) / 1000;
  return {
    record(milliseconds) {
      micros.recordValue(Math.max(0, Math.min(LONGEST_MICROS, Math.round(milliseconds * 1000))));
    },
    count: () => micros.totalCount,
    at,
    summary: () =>
      Object.fromEntries(PERCENTILE_NAMES.map((name) => [name, at(name)])) as LatencySummary,
    encoded: () => encodeIntoCompressedBase64(micros),
  };
}
