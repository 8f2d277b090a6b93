/** The metrics of one edge about the requests it serves ([core-4-15] and more). */
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { REQUEST_SECONDS } from '../protocol/contract/history-cells.ts';
import type { RateBucket } from '../protocol/route-description.ts';

/** The media type of all metrics as text. */
export const EXPOSITION_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** The metrics of an edge so far, as plain values. */
export type MetricsReport = Awaited<ReturnType<Registry['getMetricsAsJSON']>>;

export interface EdgeMetrics {
  request(method: string, route: string, status: number, seconds: number): void;
  rateLimited(bucket: RateBucket): void;
  /** Counts a node's request that was refused because it had waited too long. */
  shed(): void;
  verified(what: string, accepted: boolean): void;
  /** Counts an accepted heartbeat. */
  heartbeat(isSigned: boolean): void;
  /** Counts what happened to a heartbeat session. */
  session(event: 'begun' | 'withheld' | 'ended'): void;
  /** Call when the number of event readers changes. */
  eventReaders(difference: 1 | -1): void;
  /** Counts an event reader that was ended because it stalled. */
  eventReaderCut(): void;
  report(): Promise<MetricsReport>;
}

export function createEdgeMetrics(): EdgeMetrics {
  const registry = new Registry();
  const registers = [registry];
  const requests = new Counter({
    name: 'mesh_na_http_requests_total',
    help: 'HTTP requests answered',
    labelNames: ['method', 'route', 'status'] as const,
    registers,
  });
  const durations = new Histogram({
    name: 'mesh_na_http_request_duration_seconds',
    help: 'Time from the head of a request to its answer',
    labelNames: ['route'] as const,
    buckets: REQUEST_SECONDS,
    registers,
  });
  const limited = new Counter({
    name: 'mesh_na_rate_limited_total',
    help: 'Requests refused by a rate limit',
    labelNames: ['bucket'] as const,
    registers,
  });
  const shed = new Counter({
    name: 'mesh_na_requests_shed_total',
    help: 'Node requests refused because they had waited too long',
    registers,
  });
  const verifications = new Counter({
    name: 'mesh_na_verifications_total',
    help: 'Public verifications answered',
    labelNames: ['event', 'accepted'] as const,
    registers,
  });
  const heartbeats = new Counter({
    name: 'mesh_na_heartbeats_total',
    help: 'Heartbeats accepted, by their proof: a signature or a session',
    labelNames: ['proof'] as const,
    registers,
  });
  const sessions = new Counter({
    name: 'mesh_na_heartbeat_sessions_total',
    help: 'Heartbeat sessions that began or were withheld, and heartbeats refused because theirs had ended',
    labelNames: ['event'] as const,
    registers,
  });
  const signed = { counter: heartbeats.labels('signature'), pending: 0 };
  const inSession = { counter: heartbeats.labels('session'), pending: 0 };

  const eventReaders = new Gauge({
    name: 'mesh_na_event_readers',
    help: 'Connected event readers',
    registers,
  });
  const eventReadersCut = new Counter({
    name: 'mesh_na_event_readers_cut_total',
    help: 'Event readers that were disconnected because they stalled',
    registers,
  });

  const answers = new Map<string, Tally>();
  const acceptances = new Map<string, Tally>();
  const rejections = new Map<string, Tally>();
  /** Looking up children by label costs more than counting, so these few are cached. */
  const durationTimers = new Map<string, Histogram.Internal<'route'>>();

  return {
    request(method, route, status, seconds) {
      const known = HTTP_METHODS.has(method) ? method : 'other';
      const key = `${known} ${route} ${status}`;
      const tally =
        answers.get(key) ?? tallyOf(answers, key, requests.labels(known, route, String(status)));
      tally.pending += 1;
      const timer = durationTimers.get(route) ?? durations.labels(route);
      durationTimers.set(route, timer);
      timer.observe(seconds);
    },
    rateLimited: (bucket) => limited.inc({ bucket }),
    shed: () => shed.inc(),
    verified(event, accepted) {
      const tallies = accepted ? acceptances : rejections;
      const tally =
        tallies.get(event) ??
        tallyOf(tallies, event, verifications.labels(event, String(accepted)));
      tally.pending += 1;
    },
    heartbeat(isSigned) {
      const tally = isSigned ? signed : inSession;
      tally.pending += 1;
    },
    session: (event) => sessions.inc({ event }),
    eventReaders: (difference) => eventReaders.inc(difference),
    eventReaderCut: () => eventReadersCut.inc(),
    report() {
      for (const tallies of [answers, acceptances, rejections]) report(tallies.values());
      report([signed, inSession]);
      return registry.getMetricsAsJSON();
    },
  };
}

/** Counts of every request are kept here and added to the counters when they are read. */
interface Tally {
  readonly counter: Counter.Internal;
  pending: number;
}

function tallyOf(tallies: Map<string, Tally>, key: string, counter: Counter.Internal): Tally {
  const tally = { counter, pending: 0 };
  tallies.set(key, tally);
  return tally;
}

function report(tallies: Iterable<Tally>): void {
  for (const tally of tallies) {
    tally.counter.inc(tally.pending);
    tally.pending = 0;
  }
}

/** Clients may send any method: only known ones become label values. */
const HTTP_METHODS: ReadonlySet<string> = new Set([
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
]);
