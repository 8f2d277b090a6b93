/** The results of `load` for people. */

import type { Line } from '../../../src/cli/kernel/output.ts';
import { column, tableOf } from '../../../src/cli/kernel/table.ts';
import { byRate, type Found } from '../find.ts';
import type { ReturnResult } from '../returning-fleet.ts';
import { type Difference, generatorLimit, type RunReport } from '../run-report.ts';

export function reportText(report: RunReport): Line[] {
  const { latency_ms: latency, errors } = report;
  const kinds = Object.entries(report.kinds);
  const failures = Object.entries(errors).map(([code, count]) => `${code}: ${count}`);
  return [
    `${report.network_name} at ${report.url}: ${report.nodes} nodes, ${report.mix}, ${report.connections} connections, ${report.seconds} s`,
    `rate       ${report.rate_asked}/s asked, ${report.rate_reached.toFixed(1)}/s reached`,
    `latency    p50 ${ms(latency.p50)}, p90 ${ms(latency.p90)}, p99 ${ms(latency.p99)}, p99.9 ${ms(latency.p999)}, p99.99 ${ms(latency.p9999)}, max ${ms(latency.max)} ms`,
    ...(kinds.length < 2
      ? []
      : kinds.map(
          ([kind, { accepted, p50_ms, p99_ms }]) =>
            `  ${kind.padEnd(11)}${accepted} accepted, p50 ${ms(p50_ms)}, p99 ${ms(p99_ms)} ms`,
        )),
    `429        ${report.answered_429}`,
    `503        ${report.answered_503}`,
    `errors     ${failures.join(', ') || 'none'}`,
    ...(report.unsent === 0
      ? []
      : [`not sent   ${report.unsent}: every connection was busy when they were due`]),
    `service    ${serviceText(report)}`,
    `generator  ${generatorText(report)}`,
    ...(report.generator.was_at_limit
      ? ['The generator, not the service, was at its limit: the service may be faster than this.']
      : []),
    ...(report.answered_429 === 0
      ? []
      : ['The authority limits requests: serve with its rate limits off to measure more.']),
    ...staleFleetText(errors),
  ];
}

function serviceText({ service }: RunReport): string {
  if (service === null) return 'it does not show /metrics';
  const { requests, cpu_us_per_request, flushes, flush_ms } = service;
  const before = mebibytes(service.resident_bytes_before);
  const after = mebibytes(service.resident_bytes_after);
  return `${cpu_us_per_request.toFixed(1)} µs of CPU for each of ${requests} requests; memory ${before} MiB, then ${after} MiB; ${flushes} flushes of ${ms(flush_ms)} ms`;
}

function generatorText({ generator }: RunReport): string {
  const { signing_threads: threads, late_p99_ms: late } = generator;
  const limit = Math.round(generatorLimit(generator));
  return `up to ${limit} requests/s with ${threads} signing ${threads === 1 ? 'thread' : 'threads'}; sent p99 ${ms(late)} ms late`;
}

function staleFleetText(errors: RunReport['errors']): string[] {
  if (!Object.keys(errors).some((code) => code.endsWith('certificate_not_found'))) return [];
  return [
    'The authority does not know all certificates of the fleet: copy the folder of the fleet together with the data folder.',
  ];
}

export function foundText({ rate, endedByGenerator, attempts }: Found, slo: string): Line[] {
  const conclusion = rate === null ? `No rate meets ${slo}.` : `${rate} requests/s meet ${slo}.`;
  return [
    ...tableOf(
      [
        column('RATE', ({ report }) => report.rate_asked),
        column('REACHED', ({ report }) => report.rate_reached.toFixed(0)),
        column('P50 MS', ({ report }) => ms(report.latency_ms.p50)),
        column('P99 MS', ({ report }) => ms(report.latency_ms.p99)),
        column('P99.9 MS', ({ report }) => ms(report.latency_ms.p999)),
        column('FAILED', ({ report }) => report.due - report.accepted),
        column('MEETS IT', ({ miss }) => (miss === null ? 'yes' : `no: ${miss}`)),
      ],
      byRate(attempts),
    ),
    conclusion,
    ...(endedByGenerator
      ? ['The generator, not the service, was at its limit: the service may be faster than this.']
      : []),
  ];
}

export function differencesText(
  differences: readonly Difference[],
  settings: readonly string[],
): Line[] {
  return [
    ...tableOf<Difference>(
      [
        column('FIGURE', ({ figure }) => figure),
        column('FIRST', (each) => each.first.toFixed(2)),
        column('SECOND', (each) => each.second.toFixed(2)),
        column('CHANGE', ({ percent }) => changeText(percent)),
      ],
      differences,
    ),
    ...settings.map((setting) => `The runs differ in ${setting}.`),
  ];
}

function changeText(percent: number | null): string {
  if (percent === null) return '';
  return `${percent > 0 ? '+' : ''}${percent.toFixed(1)} %`;
}

interface Storm extends ReturnResult {
  readonly nodes: number;
  readonly connections: number;
  readonly within_ms: number;
}

export function stormText(storm: Storm): Line[] {
  const { nodes, connections, within_ms, seconds, beaten, sent, shed, givenUp, refused, away } =
    storm;
  const refusals = Object.entries(refused).map(([code, count]) => `${code}: ${count}`);
  const end =
    beaten === nodes
      ? `every node was back after ${seconds.toFixed(1)} s`
      : `${nodes - beaten} nodes were not back after ${seconds.toFixed(1)} s`;
  return [
    `${nodes} nodes returned within ${within_ms / 1000} s over ${connections} connections: ${end}.`,
    `requests   ${sent} sent; ${shed} turned away with 429 or 503, ${givenUp} given up by their nodes`,
    `away       p50 ${ms(away.p50)}, p99 ${ms(away.p99)}, max ${ms(away.max)} ms from when a node was due`,
    `errors     ${refusals.join(', ') || 'none'}`,
  ];
}

function ms(milliseconds: number): string {
  return milliseconds.toFixed(milliseconds < 10 ? 2 : 1);
}

function mebibytes(bytes: number): string {
  return (bytes / 2 ** 20).toFixed(0);
}
