/**
 * Metrics in the Prometheus text form ([core-4-15] and more). Labels are route templates, methods, statuses,
 * closed reason lists and the few instances that are linked: never a node id, a key id or a raw path. Each edge counts what it serves; the
 * authority counts the rest, and aggregates.
 */
import {
  AggregatorRegistry,
  Counter,
  collectDefaultMetrics,
  Gauge,
  Histogram,
  Registry,
} from 'prom-client';
import type { Standing } from './contract/standing.ts';
import type { RateBucket } from './http/rate-limit.ts';
import type { RefusalName } from './refusal.ts';
import { POSTURE_RULES } from './views/posture.ts';
import type { PostureFinding } from './views/rows/posture.ts';

export const EXPOSITION_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

const REQUEST_SECONDS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1];
const STORE_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1];

/** What an edge has counted so far, as plain values. */
export type MetricsReport = Awaited<ReturnType<Registry['getMetricsAsJSON']>>;

export interface EdgeMetrics {
  request(method: string, route: string, status: number, seconds: number): void;
  rateLimited(bucket: RateBucket): void;
  /** A request of a node was turned away because it had waited too long. */
  shed(): void;
  verified(what: string, accepted: boolean): void;
  /** The number of readers of events has changed by so many. */
  eventReaders(difference: 1 | -1): void;
  /** One of them was ended because it took nothing. */
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
    help: 'Requests of nodes turned away because they had waited too long',
    registers,
  });
  const verifications = new Counter({
    name: 'mesh_na_verifications_total',
    help: 'Public verifications answered',
    labelNames: ['event', 'accepted'] as const,
    registers,
  });

  const eventReaders = new Gauge({
    name: 'na_event_readers',
    help: 'Readers of events that are connected',
    registers,
  });
  const eventReadersCut = new Counter({
    name: 'na_event_readers_cut_total',
    help: 'Readers of events that were ended because they took nothing',
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
    eventReaders: (difference) => eventReaders.inc(difference),
    eventReaderCut: () => eventReadersCut.inc(),
    report() {
      for (const tallies of [answers, acceptances, rejections]) report(tallies);
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

function report(tallies: ReadonlyMap<string, Tally>): void {
  for (const tally of tallies.values()) {
    tally.counter.inc(tally.pending);
    tally.pending = 0;
  }
}

export interface AuthorityCounts {
  readonly issued_certificates: number;
  readonly active_nodes: number;
  readonly revoked_certificates: number;
  readonly crl_sequence: number;
  readonly policy_versions: number;
  readonly nonce_windows: number;
  readonly subjects: CountsByKind;
  readonly removed_subjects: CountsByKind;
  readonly posture: readonly PostureFinding[];
  /** What is wrong with nodes. */
  readonly nodes: CountsByKind;
  /** Bytes; null where it is not known. */
  readonly disk_free: number | null;
  readonly disk_min_free: number;
  /** Milliseconds since the epoch; null where it is not known. */
  readonly delegated_until: number | null;
  readonly signs: boolean;
  /** Milliseconds since the epoch, by kind; kinds of which nothing lapses are absent. */
  readonly soonest_ends: CountsByKind;
  readonly webhooks: readonly WebhookCounts[];
}

interface WebhookCounts {
  readonly host: string;
  /** Entries of the audit log that were not taken yet. */
  readonly lag_entries: number;
  /** The age of the first of them. */
  readonly lag_seconds: number;
}

interface LinkedCounts {
  readonly instance: string;
  /** Revisions; null while the follower keeps no state ready. */
  readonly lag: number | null;
}

type CountsByKind = { readonly [kind: string]: number };

const COUNTS = {
  mesh_na_issued_certs_total: ['Join certificates issued', 'issued_certificates'],
  mesh_na_active_nodes: ['Nodes with a contact within the active-node window', 'active_nodes'],
  mesh_na_revoked_certs_total: ['Certificates revoked', 'revoked_certificates'],
  mesh_na_crl_sequence: ['Sequence of the active CRL', 'crl_sequence'],
  mesh_na_policy_versions_total: ['Policy versions persisted', 'policy_versions'],
  mesh_na_nonce_windows: ['Nodes whose heartbeat nonces are remembered', 'nonce_windows'],
} as const;

export interface AuthorityMetrics {
  /** Counts a refusal by its audit event, if it is a failed authentication. */
  refused(event: string, reason: string): void;
  operatorSignatureV1(): void;
  clockStepped(byMs: number): void;
  clockSkewed(byMs: number): void;
  /** So far is this machine ahead of the database, or behind it. */
  databaseClock(aheadMs: number): void;
  /** The writer has answered a follower after so long, over the link. */
  linkAnswered(milliseconds: number): void;
  /** An answer has waited so long for the followers. */
  followersAwaited(milliseconds: number): void;
  stored(work: 'commit' | 'liveness_flush', seconds: number): void;
  /** A signature by another process took so long, or was waited for in vain. */
  signed(seconds: number, signed: boolean): void;
  /** When the TLS certificate that is served expires, in milliseconds since the epoch. */
  tlsNotAfter(at: number): void;
  /** How much of the stored state is known to be damaged. */
  scrubbed(damaged: number): void;
  /** All of the stored state was read, in milliseconds since the epoch. */
  scrubCompleted(at: number): void;
  /** When the newest verified backup of the schedule was made, in milliseconds since the epoch. */
  backupVerified(at: number): void;
  backupFailed(): void;
  /** A webhook at this host has taken so many events. */
  webhookTook(host: string, events: number): void;
  webhookFailed(host: string): void;
  /** `now` in milliseconds since the epoch. */
  jobSucceeded(job: string, now: number): void;
  /**
   * All metrics as text: state counts, the authority's own, and those of the edges. In place of the counts there
   * may be the reason why nothing is counted here.
   */
  exposition(
    counts: AuthorityCounts | RefusalName,
    edges: readonly MetricsReport[],
  ): Promise<string>;
  /** Only where other instances can write. */
  standing(standing: Standing, linked: readonly LinkedCounts[]): void;
}

export function createAuthorityMetrics(
  version: string,
  droppedLogLines: () => number,
): AuthorityMetrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry, prefix: 'mesh_na_' });
  const gauges = Object.entries(COUNTS).map(([name, [help, count]]) => ({
    gauge: new Gauge({ name, help, registers }),
    count,
  }));
  const subjects = new Gauge({
    name: 'mesh_na_subjects',
    help: 'Trust subjects held',
    labelNames: ['kind'] as const,
    registers,
  });
  const removedSubjects = new Gauge({
    name: 'mesh_na_subjects_removed_total',
    help: 'Trust subjects that were removed when their time had passed, ever',
    labelNames: ['kind'] as const,
    registers,
  });
  const posture = new Gauge({
    name: 'na_posture_finding',
    help: 'What is wrong: 1 needs attention, 2 needs action now, 0 is well',
    labelNames: ['rule'] as const,
    registers,
  });
  const nodes = new Gauge({
    name: 'na_nodes',
    help: 'Nodes that report, and how many of them are silent, unwell, lapsing or lapsed',
    labelNames: ['state'] as const,
    registers,
  });
  const diskFree = new Gauge({
    name: 'na_disk_free_bytes',
    help: 'Bytes free on the disk of the data folder',
    registers,
  });
  const diskMinFree = new Gauge({
    name: 'na_disk_min_free_bytes',
    help: 'With fewer bytes free nothing new is enrolled; 0 where that never happens',
    registers,
  });
  const delegatedUntil = new Gauge({
    name: 'na_delegation_not_after_seconds',
    help: 'When the delegation of the root key to the authority ends, seconds since the epoch',
    registers,
  });
  const soonestEnds = new Gauge({
    name: 'na_expiry_timestamp_seconds',
    help: 'When the first of each kind lapses, seconds since the epoch; a kind of which nothing lapses is absent',
    labelNames: ['kind'] as const,
    registers,
  });
  const signs = new Gauge({
    name: 'na_signer_available',
    help: '1 while signatures of the authority can be had',
    registers,
  });
  const signatures = new Histogram({
    name: 'na_signer_seconds',
    help: 'Time until the signer has answered, which the authority stands still for',
    buckets: REQUEST_SECONDS,
    registers,
  });
  const unsigned = new Counter({
    name: 'na_signer_failures_total',
    help: 'Signatures that could not be had from the signer',
    registers,
  });
  const failures = new Counter({
    name: 'mesh_na_auth_failed_total',
    help: 'Failed authentications',
    labelNames: ['kind', 'reason'] as const,
    registers,
  });
  const signaturesV1 = new Counter({
    name: 'mesh_na_operator_signature_v1_total',
    help: 'Operator requests admitted by a signature of version 1',
    registers,
  });
  const clockSteps = new Counter({
    name: 'mesh_na_clock_steps_total',
    help: 'Times the system clock was set while the service ran',
    labelNames: ['direction'] as const,
    registers,
  });
  const clockSkew = new Gauge({
    name: 'mesh_na_clock_skew_seconds',
    help: 'How far the system clock is ahead of the time the service goes by',
    registers,
  });
  const storeWork = new Histogram({
    name: 'mesh_na_store_seconds',
    help: 'Time until written state is on disk',
    labelNames: ['work'] as const,
    buckets: STORE_SECONDS,
    registers,
  });
  const restorePending = new Gauge({
    name: 'mesh_na_restore_pending',
    help: '1 while nothing is decided because the state is older than what was published',
    registers,
  });
  const scrubDamaged = new Gauge({
    name: 'na_scrub_damaged_rows',
    help: 'Rows and pages of the stored state that are known to be damaged',
    registers,
  });
  const scrubCompleted = new Gauge({
    name: 'na_scrub_completed_timestamp_seconds',
    help: 'When all of the stored state was last read for damage, seconds since the epoch',
    registers,
  });
  scrubCompleted.set(Number.NaN);
  const backupVerified = new Gauge({
    name: 'na_backup_verified_timestamp_seconds',
    help: 'When the newest verified backup of the schedule was made, seconds since the epoch',
    registers,
  });
  backupVerified.set(Number.NaN);
  const backupFailures = new Counter({
    name: 'na_backup_failures_total',
    help: 'Scheduled backups that could not be made or verified',
    registers,
  });
  const webhookEvents = new Counter({
    name: 'na_webhook_delivered_events_total',
    help: 'Events that a webhook has taken',
    labelNames: ['host'] as const,
    registers,
  });
  const webhookFailures = new Counter({
    name: 'na_webhook_failures_total',
    help: 'Requests that a webhook has not taken; they are sent again',
    labelNames: ['host'] as const,
    registers,
  });
  const webhookLagEntries = new Gauge({
    name: 'na_webhook_lag_entries',
    help: 'Entries of the audit log that a webhook has yet to take',
    labelNames: ['host'] as const,
    registers,
  });
  const webhookLagSeconds = new Gauge({
    name: 'na_webhook_lag_seconds',
    help: 'The age of the first of them',
    labelNames: ['host'] as const,
    registers,
  });
  const jobSuccesses = new Gauge({
    name: 'mesh_na_background_last_success_timestamp_seconds',
    help: 'When each background job last succeeded, seconds since the epoch',
    labelNames: ['job'] as const,
    registers,
  });
  new Counter({
    name: 'mesh_na_log_lines_dropped_total',
    help: 'Log lines that were dropped or could not be written',
    registers,
    collect() {
      this.reset();
      this.inc(droppedLogLines());
    },
  });
  new Gauge({
    name: 'mesh_na_build_info',
    help: 'Version of the running program',
    labelNames: ['version'] as const,
    registers,
  }).set({ version }, 1);

  /** Only where the authority itself serves TLS. */
  let tlsNotAfter: Gauge | null = null;

  /** Only where the state is in a database. */
  let place: PlaceMetrics | null = null;
  function inPlace(): PlaceMetrics {
    place ??= placeMetrics(registers);
    return place;
  }

  function setCounts(counts: AuthorityCounts): void {
    for (const { gauge, count } of gauges) gauge.set(counts[count]);
    for (const [kind, count] of Object.entries(counts.subjects)) subjects.set({ kind }, count);
    for (const [kind, count] of Object.entries(counts.removed_subjects)) {
      removedSubjects.set({ kind }, count);
    }
    for (const { name } of POSTURE_RULES) {
      const finding = counts.posture.find(({ rule }) => rule === name);
      posture.set({ rule: name }, finding === undefined ? 0 : GRAVITY[finding.severity]);
    }
    for (const [state, count] of Object.entries(counts.nodes)) nodes.set({ state }, count);
    diskFree.set(counts.disk_free ?? Number.NaN);
    diskMinFree.set(counts.disk_min_free);
    soonestEnds.reset();
    for (const [kind, end] of Object.entries(counts.soonest_ends)) {
      soonestEnds.set({ kind }, end / 1000);
    }
    setLags(counts.webhooks);
    signs.set(counts.signs ? 1 : 0);
    delegatedUntil.set((counts.delegated_until ?? Number.NaN) / 1000);
  }

  /** Of several webhooks at one host, the one that is furthest behind. */
  function setLags(webhooks: readonly WebhookCounts[]): void {
    webhookLagEntries.reset();
    webhookLagSeconds.reset();
    for (const { host } of webhooks) {
      const there = webhooks.filter((other) => other.host === host);
      webhookLagEntries.set({ host }, Math.max(...there.map((other) => other.lag_entries)));
      webhookLagSeconds.set({ host }, Math.max(...there.map((other) => other.lag_seconds)));
    }
  }

  return {
    refused(event, reason) {
      if (event === 'admin_auth_failed') failures.inc({ kind: 'operator', reason });
      if (event === 'node_auth_failed') failures.inc({ kind: 'node', reason });
    },
    clockStepped: (byMs) => clockSteps.inc({ direction: byMs > 0 ? 'forward' : 'back' }),
    clockSkewed: (byMs) => clockSkew.set(byMs / 1000),
    linkAnswered: (milliseconds) => inPlace().linkAnswers.observe(milliseconds / 1000),
    followersAwaited: (milliseconds) => inPlace().followersAwaited.observe(milliseconds / 1000),
    databaseClock: (aheadMs) => inPlace().databaseClock.set(aheadMs / 1000),
    tlsNotAfter(at) {
      tlsNotAfter ??= new Gauge({
        name: 'na_tls_not_after_seconds',
        help: 'When the TLS certificate that is served expires, seconds since the epoch',
        registers,
      });
      tlsNotAfter.set(at / 1000);
    },
    standing(standing, linked) {
      const { role, lease, lag, stale, followers, followerLag } = inPlace();
      const own = standing.isWriter() ? 'writer' : 'follower';
      for (const one of ROLES) role.set({ role: one }, one === own ? 1 : 0);
      lease.set(standing.isWriter() ? standing.remaining() / 1000 : 0);
      lag.set(standing.lag() ?? Number.NaN);
      stale.set(standing.staleSince() === null ? 0 : 1);
      followers.set(linked.length);
      followerLag.reset();
      for (const { instance: follower, lag: behind } of linked) {
        followerLag.set({ follower }, behind ?? Number.NaN);
      }
    },
    operatorSignatureV1: () => signaturesV1.inc(),
    signed(seconds, isSigned) {
      if (isSigned) signatures.observe(seconds);
      else unsigned.inc();
    },
    stored: (work, seconds) => storeWork.observe({ work }, seconds),
    scrubbed: (damaged) => scrubDamaged.set(damaged),
    scrubCompleted: (at) => scrubCompleted.set(at / 1000),
    backupVerified: (at) => backupVerified.set(at / 1000),
    backupFailed: () => backupFailures.inc(),
    webhookTook: (host, events) => webhookEvents.inc({ host }, events),
    webhookFailed: (host) => webhookFailures.inc({ host }),
    jobSucceeded: (job, now) => jobSuccesses.set({ job }, now / 1000),
    async exposition(counts, edges) {
      restorePending.set(counts === 'restore_pending' ? 1 : 0);
      if (typeof counts !== 'string') setCounts(counts);
      const ofEdges = AggregatorRegistry.aggregate([...edges]);
      return `${await registry.metrics()}\n${await ofEdges.metrics()}`;
    },
  };
}

const ROLES = ['writer', 'follower'] as const;

function placeMetrics(registers: Registry[]) {
  return {
    role: new Gauge({
      name: 'na_instance_role',
      help: '1 for the role of this instance among those on one database',
      labelNames: ['role'] as const,
      registers,
    }),
    lease: new Gauge({
      name: 'na_lease_remaining_seconds',
      help: 'How long this instance may write without a renewal; 0 while it does not write',
      registers,
    }),
    lag: new Gauge({
      name: 'na_replica_lag_revisions',
      help: 'How many revisions the state that this instance keeps ready is behind; NaN while it keeps none',
      registers,
    }),
    stale: new Gauge({
      name: 'na_serving_stale',
      help: '1 while this instance reaches neither the database nor a writer, and serves its last copies',
      registers,
    }),
    databaseClock: new Gauge({
      name: 'na_database_clock_difference_seconds',
      help: 'How far the clock of this machine is at least ahead of that of the database; negative when behind',
      registers,
    }),
    followers: new Gauge({
      name: 'na_link_followers',
      help: 'How many followers are linked to this instance; 0 while it does not write',
      registers,
    }),
    followerLag: new Gauge({
      name: 'na_follower_lag_revisions',
      help: 'How many revisions the state that a linked follower keeps ready is behind; NaN while it keeps none',
      // What scrapes a target labels each sample of it with its own `instance`.
      labelNames: ['follower'] as const,
      registers,
    }),
    linkAnswers: new Histogram({
      name: 'na_link_round_trip_seconds',
      help: 'Time until the instance that writes has answered this follower over the link',
      buckets: STORE_SECONDS,
      registers,
    }),
    followersAwaited: new Histogram({
      name: 'na_link_followers_awaited_seconds',
      help: 'Time that an answer of the instance that writes has waited for its followers',
      buckets: STORE_SECONDS,
      registers,
    }),
  };
}

type PlaceMetrics = ReturnType<typeof placeMetrics>;

const GRAVITY = { attention: 1, action: 2 } as const;

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
