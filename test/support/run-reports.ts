import { newLatencies } from '../../bench/load/latency.ts';
import type { RunReport } from '../../bench/load/run-report.ts';

/** The report of a run in which everything went well, except for the given members. */
export function runReport(given: Partial<RunReport> = {}): RunReport {
  const latencies = newLatencies();
  latencies.record(5);
  return {
    kind: 'mesh-na-load-run',
    version: 1,
    started_at: '2026-01-01T00:00:00.000000Z',
    url: 'http://127.0.0.1:8443',
    network_name: 'alpha',
    mix: 'heartbeat=1',
    nodes: 10,
    connections: 64,
    bulletins: false,
    sessions: false,
    seconds: 10,
    rate_asked: 100,
    rate_reached: 100,
    due: 1000,
    accepted: 1000,
    answered_429: 0,
    answered_503: 0,
    unsent: 0,
    errors: {},
    latency_ms: latencies.summary(),
    kinds: { heartbeat: { accepted: 1000, p50_ms: 5, p99_ms: 5 } },
    generator: {
      signing_threads: 1,
      signing_limit: 20_000,
      sending_limit: null,
      late_p99_ms: 0,
      was_at_limit: false,
    },
    service: {
      requests: 1000,
      cpu_seconds: 0.05,
      cpu_us_per_request: 50,
      resident_bytes_before: 200 * 2 ** 20,
      resident_bytes_after: 201 * 2 ** 20,
      flushes: 10,
      flush_ms: 3,
    },
    histogram: latencies.encoded(),
    ...given,
  };
}
