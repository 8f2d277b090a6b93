/** The result of a benchmark: medians over its rounds, as one JSON value and as an aligned table. */
import { type Measured, rateOf } from './contest.ts';
import type { RoundResult } from './round.ts';

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
  readonly p50_ms: number | null;
  readonly p99_ms: number | null;
  readonly p999_ms: number | null;
};

export type Spread = { readonly median: number; readonly lowest: number; readonly highest: number };

/** Both ratios are 1 if the two cost the same, and less than 1 if the first one is slower. */
export type Comparison = {
  readonly of: string;
  readonly against: string;
  readonly target: number | null;
  readonly rate: Spread;
  readonly cpu: Spread;
};

export type Report = {
  readonly benchmark: string;
  readonly about: string;
  readonly lines: readonly Line[];
  readonly comparisons: readonly Comparison[];
  readonly notes: readonly string[];
};

/** Above this share of a core, a process may be the bottleneck. */
const BUSY = 0.9;
const GO_BY_CPU = 'go by CPU per request, not by rate';

export function lineOf({ name, rounds }: Measured): Line {
  return {
    name,
    requests_per_second: rounded(median(rounds.map(rateOf)), 0),
    cpu_us_per_request: rounded(median(rounds.map(cpuMicros)), 1),
    main_us_per_request: rounded(median(rounds.map(mainMicros)), 1),
    server_cpu: rounded(median(rounds.map((round) => round.serverCpuSeconds / round.seconds)), 2),
    client_cpu: rounded(median(rounds.map(clientShare)), 2),
    p50_ms: medianLatency(rounds, 'p50'),
    p99_ms: medianLatency(rounds, 'p99'),
    p999_ms: medianLatency(rounds, 'p999'),
  };
}

/** Compares round by round, because consecutive rounds saw the same load on the machine. */
export function compare(of: Measured, against: Measured, target: number | null): Comparison {
  const pairs = of.rounds.flatMap((round, index) => {
    const other = against.rounds[index];
    return other === undefined ? [] : [[round, other] as const];
  });
  return {
    of: of.name,
    against: against.name,
    target,
    rate: spread(pairs.map(([round, other]) => rateOf(round) / rateOf(other))),
    cpu: spread(pairs.map(([round, other]) => cpuMicros(other) / cpuMicros(round))),
  };
}

/** Notes about rounds in which the load generator itself was the bottleneck. */
export function busyClientNotes(standings: readonly Measured[]): string[] {
  return standings.flatMap(({ name, rounds }) => {
    const highest = Math.max(...rounds.map(clientShare));
    if (highest <= BUSY) return [];
    return [`${name}: the load generator used up to ${percent(highest)} CPU; ${GO_BY_CPU}`];
  });
}

/** Notes about closed loops in which neither side was the bottleneck, so that other work took CPU from both. */
export function starvedNotes(standings: readonly Measured[]): string[] {
  return standings.flatMap((measured) => {
    const { name, server_cpu: server, client_cpu: client } = lineOf(measured);
    if (server >= BUSY || client >= BUSY) return [];
    return [
      `${name}: the server got only ${percent(server)} CPU because of other work; ${GO_BY_CPU}`,
    ];
  });
}

export function textOf({ benchmark, about, lines, comparisons, notes }: Report): string[] {
  return [
    `${benchmark}: ${about}`,
    ...rateTable(lines),
    ...comparisons.map(comparisonText),
    ...notes.map((note) => `  note: ${note}`),
    '',
  ];
}

function rateTable(lines: readonly Line[]): string[] {
  return table([
    [
      '',
      'req/s',
      'CPU µs/req',
      'main thread',
      'server CPU',
      'client CPU',
      'p50 ms',
      'p99 ms',
      'p99.9 ms',
    ],
    ...lines.map((line) => [
      line.name,
      line.requests_per_second.toLocaleString('en'),
      line.cpu_us_per_request.toFixed(1),
      line.main_us_per_request.toFixed(1),
      percent(line.server_cpu),
      percent(line.client_cpu),
      ...[line.p50_ms, line.p99_ms, line.p999_ms].map((ms) => ms?.toFixed(2) ?? '-'),
    ]),
  ]);
}

function comparisonText({ of, against, target, rate, cpu }: Comparison): string {
  const aim = target === null ? '' : ` (target ${target.toFixed(2)})`;
  return `  ${of} / ${against}: by rate ${spreadText(rate)}, by CPU ${spreadText(cpu)}${aim}`;
}

function spreadText({ median: middle, lowest, highest }: Spread): string {
  return `${middle.toFixed(2)} [${lowest.toFixed(2)}..${highest.toFixed(2)}]`;
}

/** The first column is aligned left, numbers are aligned right. */
function table(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  );
  return rows.map((row) => {
    const cells = row.map((cell, column) => {
      const width = widths[column] ?? 0;
      return column === 0 ? cell.padEnd(width) : cell.padStart(width);
    });
    return `  ${cells.join('  ')}`;
  });
}

function cpuMicros({ serverCpuSeconds, answered }: RoundResult): number {
  return (serverCpuSeconds * 1_000_000) / answered;
}

function mainMicros({ mainThreadSeconds, answered }: RoundResult): number {
  return (mainThreadSeconds * 1_000_000) / answered;
}

function clientShare({ clientCpuSeconds, seconds }: RoundResult): number {
  return clientCpuSeconds / seconds;
}

function medianLatency(rounds: readonly RoundResult[], at: 'p50' | 'p99' | 'p999'): number | null {
  const values = rounds.flatMap(({ latency }) => (latency === null ? [] : [latency[at]]));
  return values.length === 0 ? null : rounded(median(values), 3);
}

function spread(values: readonly number[]): Spread {
  return {
    median: rounded(median(values), 3),
    lowest: rounded(Math.min(...values), 3),
    highest: rounded(Math.max(...values), 3),
  };
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
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
