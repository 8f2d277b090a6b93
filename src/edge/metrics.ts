/** The metrics of one edge about the requests it serves ([core-4-15] and more). */
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { RateBucket } from '../protocol/route-description.ts';
import { REQUEST_SECONDS, STORE_SECONDS } from '../protocol/rows/history.ts';

/** The metrics of an edge so far, as plain values. */
export type MetricsReport = Awaited<ReturnType<Registry['getMetricsAsJSON']>>;

/** What refuses requests for now; the last are large bodies of operators whose signature may not verify. */
export type LimitName = RateBucket | 'UNPROVEN_BODIES';

const DURATION = 'mesh_na_http_request_duration_seconds';

export type EdgeMetrics = ReturnType<typeof createEdgeMetrics>;

export function createEdgeMetrics() {
  const registry = new Registry();
  const registers = [registry];
  const requests = new Counter({
    name: 'mesh_na_http_requests_total',
    help: 'HTTP requests answered',
    labelNames: ['method', 'route', 'status'] as const,
    registers,
  });
  new Histogram({
    name: DURATION,
    help: 'Time from the head of a request to its answer',
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
    help: 'Requests refused because they had waited too long',
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

  const passed = new Counter({
    name: 'mesh_na_forwarded_requests_total',
    help: 'Requests that the active instance has answered for this standby',
    registers,
  });
  const linkAnswers = new Histogram({
    name: 'mesh_na_link_round_trip_seconds',
    help: 'Time the active instance took to answer when this standby asked whether it is there',
    buckets: STORE_SECONDS,
    registers,
  });

  const routes = new Map<string, RouteTally>();
  const acceptances = new Map<string, Tally>();
  const rejections = new Map<string, Tally>();

  return {
    request(method: string, route: string, status: number, seconds: number): void {
      const known = HTTP_METHODS.has(method) ? method : 'other';
      const ofRoute = routes.get(route) ?? newRouteTally(routes, route);
      const tally =
        ofRoute.answers.get(known)?.get(status) ??
        tallyOf(
          inserted(ofRoute.answers, known),
          status,
          requests.labels(known, route, String(status)),
        );
      tally.pending += 1;
      count(ofRoute, seconds);
    },
    /** Counts a request that another instance has answered. */
    passed: () => passed.inc(),
    rateLimited: (bucket: LimitName) => limited.inc({ bucket }),
    /** Counts a request that was refused because it had waited too long. */
    shed: () => shed.inc(),
    verified(event: string, accepted: boolean): void {
      const tallies = accepted ? acceptances : rejections;
      const tally =
        tallies.get(event) ??
        tallyOf(tallies, event, verifications.labels(event, String(accepted)));
      tally.pending += 1;
    },
    /** Counts an accepted heartbeat. */
    heartbeat(isSigned: boolean): void {
      const tally = isSigned ? signed : inSession;
      tally.pending += 1;
    },
    /** Counts what happened to a heartbeat session. */
    session: (event: 'begun' | 'withheld' | 'ended') => sessions.inc({ event }),
    /** Call when the number of event readers changes. */
    eventReaders: (difference: 1 | -1) => eventReaders.inc(difference),
    /** Counts an event reader that was ended because it stalled. */
    eventReaderCut: () => eventReadersCut.inc(),
    /** The active instance has answered this one after this many milliseconds. */
    answered: (milliseconds: number) => linkAnswers.observe(milliseconds / 1000),
    async report(): Promise<MetricsReport> {
      for (const { answers } of routes.values()) {
        for (const tallies of answers.values()) report(tallies.values());
      }
      for (const tallies of [acceptances, rejections]) report(tallies.values());
      report([signed, inSession]);
      const values = [...routes].flatMap(durationsOf);
      const metrics = await registry.getMetricsAsJSON();
      return metrics.map((metric) => (metric.name === DURATION ? { ...metric, values } : metric));
    },
  };
}

/** Counts of every request are kept here and added to the counters when they are read. */
interface Tally {
  readonly counter: Counter.Internal;
  pending: number;
}

function tallyOf<Key>(tallies: Map<Key, Tally>, key: Key, counter: Counter.Internal): Tally {
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

/**
 * What a route has answered. The library would search and check the labels of its histogram for each request, which
 * takes a tenth of the time of a cached document.
 */
interface RouteTally {
  /** By method and status. */
  readonly answers: Map<string, Map<number, Tally>>;
  /** The number of requests in each bucket; the last one has no upper bound. */
  readonly buckets: number[];
  seconds: number;
}

function inserted(answers: RouteTally['answers'], method: string): Map<number, Tally> {
  const ofMethod = answers.get(method) ?? new Map<number, Tally>();
  answers.set(method, ofMethod);
  return ofMethod;
}

function newRouteTally(routes: Map<string, RouteTally>, route: string): RouteTally {
  const buckets = new Array<number>(REQUEST_SECONDS.length + 1).fill(0);
  const tally = { answers: new Map(), buckets, seconds: 0 };
  routes.set(route, tally);
  return tally;
}

function count(tally: RouteTally, seconds: number): void {
  let at = 0;
  while (seconds > (REQUEST_SECONDS[at] ?? Infinity)) at += 1;
  tally.buckets[at] = (tally.buckets[at] ?? 0) + 1;
  tally.seconds += seconds;
}

/** Each bucket of the metric includes those before it. */
function durationsOf([route, { buckets, seconds }]: readonly [string, RouteTally]) {
  let counted = 0;
  const values = buckets.map((more, at) => {
    counted += more;
    const labels = { le: REQUEST_SECONDS[at] ?? '+Inf', route };
    return { metricName: `${DURATION}_bucket`, labels, value: counted };
  });
  return [
    ...values,
    { metricName: `${DURATION}_sum`, labels: { route }, value: seconds },
    { metricName: `${DURATION}_count`, labels: { route }, value: counted },
  ];
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
