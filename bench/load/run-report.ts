/** The result of a run, as it is printed, saved, and compared with another one. */

import Type, { type Static } from 'typebox';
import { Compile } from 'typebox/compile';
import { PERCENTILE_NAMES, readLatencies } from './latency.ts';

export const RunReport = Type.Object({
  kind: Type.Literal('mesh-na-load-run'),
  version: Type.Literal(1),
  started_at: Type.String(),
  url: Type.String(),
  network_name: Type.String(),
  mix: Type.String(),
  nodes: Type.Integer(),
  connections: Type.Integer(),
  bulletins: Type.Boolean(),
  sessions: Type.Boolean(),
  /** Without the warm-up, which nothing below counts. */
  seconds: Type.Number(),
  rate_asked: Type.Number(),
  /** Requests per second that were accepted in this time. */
  rate_reached: Type.Number(),
  due: Type.Integer(),
  accepted: Type.Integer(),
  /** Rate limits and overload. */
  answered_429: Type.Integer(),
  answered_503: Type.Integer(),
  /** Requests that were not sent within a second of the end, because every connection was busy. */
  unsent: Type.Integer(),
  /** Everything that was neither accepted nor one of the above, by status and error code. */
  errors: Type.Record(Type.String(), Type.Integer()),
  /** From when a request was due until its answer, of accepted requests and of those that waited in vain. */
  latency_ms: Type.Record(Type.Enum(PERCENTILE_NAMES), Type.Number()),
  kinds: Type.Record(
    Type.String(),
    Type.Object({ accepted: Type.Integer(), p50_ms: Type.Number(), p99_ms: Type.Number() }),
  ),
  generator: Type.Object({
    signing_threads: Type.Integer(),
    signing_limit: Type.Number(),
    /** Null if sending was too little work to be measured. */
    sending_limit: Type.Union([Type.Number(), Type.Null()]),
    /** How late the generator sent requests although a connection was idle. */
    late_p99_ms: Type.Number(),
    was_at_limit: Type.Boolean(),
  }),
  /** Null if the service did not answer `/metrics`. */
  service: Type.Union([
    Type.Object({
      requests: Type.Number(),
      cpu_seconds: Type.Number(),
      cpu_us_per_request: Type.Number(),
      resident_bytes_before: Type.Number(),
      resident_bytes_after: Type.Number(),
      flushes: Type.Number(),
      flush_ms: Type.Number(),
    }),
    Type.Null(),
  ]),
  /** All latencies, in the compressed base64 format of HdrHistogram; microseconds. */
  histogram: Type.String(),
});

export type RunReport = Static<typeof RunReport>;

const schema = Compile(RunReport);

/** Null if the value is not a report. */
export function readRunReport(value: unknown): RunReport | null {
  return schema.Check(value) && readLatencies(value.histogram) !== null ? value : null;
}

/** The requests per second that the generator could have sent, as far as it is known. */
export function generatorLimit({
  signing_limit,
  sending_limit,
}: Pick<RunReport['generator'], 'signing_limit' | 'sending_limit'>): number {
  return Math.min(signing_limit, sending_limit ?? Number.POSITIVE_INFINITY);
}

export interface Difference {
  readonly figure: string;
  readonly first: number;
  readonly second: number;
  /** The second compared to the first, in percent; null if the first is 0. */
  readonly percent: number | null;
}

export function compareRuns(first: RunReport, second: RunReport): Difference[] {
  const [a, b] = [readLatencies(first.histogram), readLatencies(second.histogram)];
  const failed = ({ due, accepted }: RunReport) => due - accepted;
  const cost = ({ service }: RunReport) => service?.cpu_us_per_request ?? 0;
  const memory = ({ service }: RunReport) => (service?.resident_bytes_after ?? 0) / 2 ** 20;
  return [
    difference('requests/s', first.rate_reached, second.rate_reached),
    difference('failed requests', failed(first), failed(second)),
    ...PERCENTILE_NAMES.map((name) =>
      difference(`${name} (ms)`, a?.at(name) ?? 0, b?.at(name) ?? 0),
    ),
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
