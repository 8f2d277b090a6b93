/** Two runs, figure by figure. */
import { type Percentile, readLatencies } from './latency.ts';
import type { RunReport } from './run-report.ts';

export interface Difference {
  readonly figure: string;
  readonly first: number;
  readonly second: number;
  /** The second compared to the first, in percent; null if the first is 0. */
  readonly percent: number | null;
}

const COMPARED: readonly Percentile[] = ['p50', 'p90', 'p99', 'p999', 'p9999', 'max'];

export function compareRuns(first: RunReport, second: RunReport): Difference[] {
  const [a, b] = [readLatencies(first.histogram), readLatencies(second.histogram)];
  const failed = ({ due, accepted }: RunReport) => due - accepted;
  const cost = ({ service }: RunReport) => service?.cpu_us_per_request ?? 0;
  const memory = ({ service }: RunReport) => (service?.resident_bytes_after ?? 0) / 2 ** 20;
  return [
    difference('requests/s', first.rate_reached, second.rate_reached),
    difference('failed requests', failed(first), failed(second)),
    ...COMPARED.map((name) => difference(`${name} (ms)`, a?.at(name) ?? 0, b?.at(name) ?? 0)),
    difference('CPU of the service (µs/request)', cost(first), cost(second)),
    difference('memory of the service (MiB)', memory(first), memory(second)),
  ];
}

/** Settings that differ, because then the comparison is of more than the service. */
export function differingSettings(first: RunReport, second: RunReport): string[] {
  const settings = [
    'rate_asked',
    'mix',
    'nodes',
    'connections',
    'bulletins',
    'sessions',
    'seconds',
  ] as const;
  return settings.flatMap((name) =>
    first[name] === second[name] ? [] : [`${name}: ${first[name]}, ${second[name]}`],
  );
}

function difference(figure: string, first: number, second: number): Difference {
  const percent = first === 0 ? null : ((second - first) / first) * 100;
  return { figure, first, second, percent };
}
