/** The result of a benchmark: medians over its rounds, as one JSON value and as text. */
import type { Line as TextLine } from '../src/cli/kernel/output.ts';
import { column, tableOf } from '../src/cli/kernel/table.ts';
import type { Latencies } from './load/latency.ts';
import type { RoundResult } from './rounds.ts';

export type Line = {
  readonly name: string;
  readonly requests_per_second: number;
  /** CPU time of the server per answered request. */
  readonly cpu_us_per_request: number;
  /** The share of the server's main thread, which with several threads is the authority's. */
  readonly main_us_per_request: number;
  /** CPU time of each process per elapsed time; one busy thread is 1. */
  readonly server_cpu: number;
  readonly client_cpu: number;
  readonly p50_ms: number;
  readonly p99_ms: number;
  readonly longest_ms: number;
};

export type Spread = { readonly median: number; readonly lowest: number; readonly highest: number };

/** All ratios are 1 if the two cost the same; the first two are less than 1 if the first one is slower. */
export type Comparison = {
  readonly of: string;
  readonly against: string;
  readonly target: number | null;
  readonly rate: Spread;
  readonly cpu: Spread;
  readonly p50: Spread;
};

export type Report = {
  readonly benchmark: string;
  readonly about: string;
  readonly lines: readonly Line[];
  readonly comparisons: readonly Comparison[];
  readonly notes: readonly string[];
};

export interface Measured {
  readonly name: string;
  readonly rounds: readonly RoundResult[];
}

export function lineOf({ name, rounds }: Measured): Line {
  const middle = (figure: (round: RoundResult) => number, digits: number) =>
    rounded(median(rounds.map(figure)), digits);
  return {
    name,
    requests_per_second: middle(rateOf, 0),
    cpu_us_per_request: middle(cpuMicros, 1),
    main_us_per_request: middle((round) => (round.mainThreadSeconds * 1e6) / round.answered, 1),
    server_cpu: middle((round) => round.serverCpuSeconds / round.seconds, 2),
    client_cpu: middle((round) => round.clientCpuSeconds / round.seconds, 2),
    p50_ms: middle(({ latency }) => latency.p50, 3),
    p99_ms: middle(({ latency }) => latency.p99, 3),
    longest_ms: rounded(Math.max(...rounds.map(({ latency }) => latency.max)), 3),
  };
}

/** Compares round by round, because consecutive rounds saw the same load on the machine. */
export function compare(of: Measured, against: Measured, target: number | null): Comparison {
  const ratios = (ratio: (round: RoundResult, other: RoundResult) => number): Spread =>
    spread(
      of.rounds.flatMap((round, index) => {
        const other = against.rounds[index];
        return other === undefined ? [] : [ratio(round, other)];
      }),
    );
  return {
    of: of.name,
    against: against.name,
    target,
    rate: ratios((round, other) => rateOf(round) / rateOf(other)),
    cpu: ratios((round, other) => cpuMicros(other) / cpuMicros(round)),
    p50: ratios((round, other) => round.latency.p50 / other.latency.p50),
  };
}

export function textOf({ benchmark, about, lines, comparisons, notes }: Report): TextLine[] {
  return [
    `${benchmark}: ${about}`,
    ...(lines.length === 0 ? [] : rateTable(lines)),
    ...comparisons.map(comparisonText),
    ...notes.map((note) => `note: ${note}`),
    '',
  ];
}

function rateTable(lines: readonly Line[]): TextLine[] {
  return tableOf<Line>(
    [
      column('CONTESTANT', ({ name }) => name),
      column('REQ/S', (line) => line.requests_per_second.toLocaleString('en')),
      column('CPU µS/REQ', (line) => line.cpu_us_per_request.toFixed(1)),
      column('MAIN THREAD', (line) => line.main_us_per_request.toFixed(1)),
      column('SERVER CPU', (line) => percent(line.server_cpu)),
      column('CLIENT CPU', (line) => percent(line.client_cpu)),
      column('P50 MS', (line) => line.p50_ms.toFixed(2)),
      column('P99 MS', (line) => line.p99_ms.toFixed(2)),
      column('LONGEST MS', (line) => line.longest_ms.toFixed(2)),
    ],
    lines,
  );
}

function comparisonText({ of, against, target, rate, cpu, p50 }: Comparison): string {
  const aim = target === null ? '' : ` (target ${target.toFixed(2)})`;
  const ratios = `by rate ${spreadText(rate)}, by CPU ${spreadText(cpu)}, by p50 ${spreadText(p50)}`;
  return `${of} / ${against}: ${ratios}${aim}`;
}

function spreadText({ median: middle, lowest, highest }: Spread): string {
  return `${middle.toFixed(2)} [${lowest.toFixed(2)}..${highest.toFixed(2)}]`;
}

export function latencyText(latencies: Latencies): string {
  const at = (percentile: 'p50' | 'p99' | 'max') => latencies.at(percentile).toFixed(1);
  return `p50 ${at('p50')} ms, p99 ${at('p99')} ms, longest ${at('max')} ms`;
}

export function rateOf({ answered, seconds }: RoundResult): number {
  return answered / seconds;
}

function cpuMicros({ serverCpuSeconds, answered }: RoundResult): number {
  return (serverCpuSeconds * 1_000_000) / answered;
}

function spread(values: readonly number[]): Spread {
  return {
    median: rounded(median(values), 3),
    lowest: rounded(Math.min(...values), 3),
    highest: rounded(Math.max(...values), 3),
  };
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

function rounded(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}
