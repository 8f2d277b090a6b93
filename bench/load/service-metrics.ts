/** What the service says about itself in `/metrics`. */
import { type Address, openLane } from './connection.ts';
import { bytesOf, getRequest, type Site } from './requests.ts';
import type { RunReport } from './run-report.ts';

export interface ServiceMetrics {
  readonly cpuSeconds: number;
  readonly residentBytes: number;
  readonly requests: number;
  /** Writes of state that reached the disk, and how long they took together. */
  readonly flushes: number;
  readonly flushSeconds: number;
  readonly issuedCertificates: number;
}

/** A service that hangs must not make a run hang. */
const LONGEST_MS = 10_000;

/**
 * Null if the service does not show its metrics. Each reading opens a connection of its own, because a service ends
 * connections that are idle for as long as a run.
 */
export async function readMetrics(target: Address, site: Site): Promise<ServiceMetrics | null> {
  const { ask, close } = await openLane(target);
  try {
    const request = bytesOf(getRequest('/metrics'), site);
    const answer = await Promise.race([ask(request), timeout(LONGEST_MS)]);
    return answer?.status === 200 ? readServiceMetrics(answer.text) : null;
  } finally {
    close();
  }
}

/** Does not keep the process alive. */
function timeout(milliseconds: number): Promise<null> {
  const signal = AbortSignal.timeout(milliseconds);
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(null)));
}

/** Null if the text has no metrics of an authority. */
export function readServiceMetrics(text: string): ServiceMetrics | null {
  const sums = new Map<string, number>();
  for (const line of text.split('\n')) {
    const [, name = '', value = ''] = /^(mesh_na_\w+)(?:\{.*\})? (\S+)$/.exec(line) ?? [];
    if (name !== '') sums.set(name, (sums.get(name) ?? 0) + Number(value));
  }
  const cpuSeconds = sums.get('mesh_na_process_cpu_seconds_total');
  if (cpuSeconds === undefined) return null;
  const sum = (name: string) => sums.get(`mesh_na_${name}`) ?? 0;
  return {
    cpuSeconds,
    residentBytes: sum('process_resident_memory_bytes'),
    requests: sum('http_requests_total'),
    flushes: sum('store_seconds_count'),
    flushSeconds: sum('store_seconds_sum'),
    issuedCertificates: sum('issued_certs_total'),
  };
}

/** What happened between two readings. */
export function serviceUse(
  before: ServiceMetrics,
  after: ServiceMetrics,
): NonNullable<RunReport['service']> {
  const requests = after.requests - before.requests;
  const cpuSeconds = after.cpuSeconds - before.cpuSeconds;
  const flushes = after.flushes - before.flushes;
  return {
    requests,
    cpu_seconds: cpuSeconds,
    cpu_us_per_request: requests === 0 ? 0 : (cpuSeconds * 1e6) / requests,
    resident_bytes_before: before.residentBytes,
    resident_bytes_after: after.residentBytes,
    flushes,
    flush_ms: flushes === 0 ? 0 : ((after.flushSeconds - before.flushSeconds) * 1000) / flushes,
  };
}
