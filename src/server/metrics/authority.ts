/**
 * Metrics in the Prometheus text form ([core-4-15] and more). Labels are route templates, methods, statuses, values
 * from closed lists, and the few linked instances; never node ids, key ids or raw paths. Each edge counts the requests
 * it serves; the authority counts everything else and aggregates.
 */
import { AggregatorRegistry, collectDefaultMetrics, Registry } from 'prom-client';
import type { MetricsReport } from '../../edge/metrics.ts';
import type { InstanceStatus } from '../../protocol/contract/instance-status.ts';
import type { RefusalName } from '../../protocol/refusals.ts';
import { AUDIT_EVENTS } from '../../protocol/rows/audit-event.ts';
import { REQUEST_SECONDS, STORE_SECONDS } from '../../protocol/rows/history.ts';
import type { SeenInstance } from '../../store/postgresql/instances.ts';
import { counter, gauge, histogram, register } from './definitions.ts';
import { type AuthorityCounts, createStateMetrics } from './state.ts';

const DEFINITIONS = {
  signatures: histogram(
    'mesh_na_signer_seconds',
    'Time the signer took to answer, during which the authority is blocked',
    REQUEST_SECONDS,
  ),
  unsigned: counter(
    'mesh_na_signer_failures_total',
    'Signatures that could not be obtained from the signer',
  ),
  failures: counter('mesh_na_auth_failed_total', 'Failed authentications', 'kind', 'reason'),
  audited: counter('mesh_na_audit_events_total', 'Entries added to the audit log', 'event'),
  signaturesV1: counter(
    'mesh_na_operator_signature_v1_total',
    'Operator requests admitted with a version 1 signature',
  ),
  clockSteps: counter(
    'mesh_na_clock_steps_total',
    'Times the system clock was set while the service ran',
    'direction',
  ),
  clockSkew: gauge(
    'mesh_na_clock_skew_seconds',
    'How far the system clock is ahead of the time used by the service',
  ),
  storeWork: histogram(
    'mesh_na_store_seconds',
    'Time for written state to reach the disk',
    STORE_SECONDS,
    'work',
  ),
  restorePending: gauge(
    'mesh_na_restore_pending',
    '1 while requests are refused because the state is older than what was published',
  ),
  backupVerified: gauge(
    'mesh_na_backup_verified_timestamp_seconds',
    'When the newest verified scheduled backup was made, seconds since the epoch',
  ),
  backupFailures: counter(
    'mesh_na_backup_failures_total',
    'Scheduled backups that failed or could not be verified',
  ),
  webhookEvents: counter(
    'mesh_na_webhook_delivered_events_total',
    'Events accepted by a webhook',
    'host',
  ),
  webhookFailures: counter(
    'mesh_na_webhook_failures_total',
    'Requests that a webhook did not accept; they are retried',
    'host',
  ),
  jobSuccesses: gauge(
    'mesh_na_background_last_success_timestamp_seconds',
    'When each background job last succeeded, seconds since the epoch',
    'job',
  ),
  droppedLines: counter(
    'mesh_na_log_lines_dropped_total',
    'Log lines that were dropped or could not be written',
  ),
  build: gauge('mesh_na_build_info', 'Version of the running program', 'version'),
};

/** Registered only if the authority itself serves TLS. */
const TLS = {
  notAfter: gauge(
    'mesh_na_tls_not_after_seconds',
    'When the TLS certificate in use expires, seconds since the epoch',
  ),
};

const AUDITED: ReadonlySet<string> = new Set(AUDIT_EVENTS);

export type AuthorityMetrics = ReturnType<typeof createAuthorityMetrics>;

export function createAuthorityMetrics(version: string, droppedLogLines: () => number) {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, prefix: 'mesh_na_' });
  const metrics = register(registry, DEFINITIONS);
  setFirst(metrics, version);
  /** A standby has none: it would report 0 free bytes, and a delegation that ended in 1970. */
  const setCounts = once(() => createStateMetrics(registry));
  const tls = once(() => register(registry, TLS));
  /** These exist only if the state is in a database. */
  const instances = once(() => createInstanceMetrics(registry));

  return {
    instances,
    /** Counts a refusal if its audit event is a failed authentication. */
    refused(event: string, reason: string): void {
      if (event === 'admin_auth_failed') metrics.failures.inc({ kind: 'operator', reason });
      if (event === 'node_auth_failed') metrics.failures.inc({ kind: 'node', reason });
    },
    /** Counts an entry of the audit log; other events are only logged. */
    audited(event: string): void {
      if (AUDITED.has(event)) metrics.audited.inc({ event });
    },
    operatorSignatureV1: (): void => metrics.signaturesV1.inc(),
    clockStepped: (byMs: number): void =>
      metrics.clockSteps.inc({ direction: byMs > 0 ? 'forward' : 'back' }),
    clockSkewed: (byMs: number): void => metrics.clockSkew.set(byMs / 1000),
    stored: (work: 'commit' | 'liveness_flush', seconds: number): void =>
      metrics.storeWork.observe({ work }, seconds),
    /** A signature by the signer process took this long, or was not obtained in this time. */
    signed(seconds: number, isSigned: boolean): void {
      if (isSigned) metrics.signatures.observe(seconds);
      else metrics.unsigned.inc();
    },
    /** When the TLS certificate that is served expires, in milliseconds since the epoch. */
    tlsNotAfter: (at: number): void => tls().notAfter.set(at / 1000),
    /** When the newest verified scheduled backup was made, in milliseconds since the epoch. */
    backupVerified: (at: number): void => metrics.backupVerified.set(at / 1000),
    backupFailed: (): void => metrics.backupFailures.inc(),
    /** A webhook at this host has accepted this many events. */
    webhookTook: (host: string, events: number): void =>
      metrics.webhookEvents.inc({ host }, events),
    webhookFailed: (host: string): void => metrics.webhookFailures.inc({ host }),
    /** `now` in milliseconds since the epoch. */
    jobSucceeded: (job: string, now: number): void => metrics.jobSuccesses.set({ job }, now / 1000),
    /**
     * All metrics as text: counts of the state, those of the authority, and those of the edges. If there are no counts,
     * the reason is passed instead.
     */
    async exposition(counts: AuthorityCounts | RefusalName, edges: readonly MetricsReport[]) {
      metrics.restorePending.set(counts === 'restore_pending' ? 1 : 0);
      if (typeof counts !== 'string') setCounts()(counts);
      metrics.droppedLines.reset();
      metrics.droppedLines.inc(droppedLogLines());
      const ofEdges = AggregatorRegistry.aggregate([...edges]);
      return `${await registry.metrics()}\n${await ofEdges.metrics()}`;
    },
    /** The metrics of the authority that the history is built from. */
    report: () => reportOf(metrics),
  };
}

type Metrics = ReturnType<typeof register<typeof DEFINITIONS>>;

/** Before anything was counted: with a first value, the first event is an increase. */
function setFirst(metrics: Metrics, version: string): void {
  for (const event of AUDIT_EVENTS) metrics.audited.inc({ event }, 0);
  for (const direction of ['forward', 'back']) metrics.clockSteps.inc({ direction }, 0);
  metrics.backupVerified.set(Number.NaN);
  metrics.build.set({ version }, 1);
}

function reportOf({ failures, audited, clockSteps, storeWork }: Metrics): Promise<MetricsReport> {
  return Promise.all([failures, audited, clockSteps, storeWork].map((each) => each.get()));
}

function once<T extends object>(create: () => T): () => T {
  let created: T | null = null;
  return () => {
    created ??= create();
    return created;
  };
}

const OF_INSTANCES = {
  role: gauge(
    'mesh_na_instance_role',
    '1 for the current role of this instance among those on one database',
    'role',
  ),
  leaseRemaining: gauge(
    'mesh_na_lease_remaining_seconds',
    'How long this instance may stay active without renewing its lease; 0 while it is not active',
  ),
  lag: gauge(
    'mesh_na_replica_lag_revisions',
    'How many revisions the standby state of this instance is behind; NaN while it has none',
  ),
  stale: gauge(
    'mesh_na_serving_stale',
    '1 while this instance reaches neither a writable database nor an active instance, and serves last copies',
  ),
  databaseClock: gauge(
    'mesh_na_database_clock_difference_seconds',
    'How far the clock of this machine is ahead of the database clock, at least; negative if behind',
  ),
  standbys: gauge(
    'mesh_na_standbys',
    'How many standbys this instance sees; 0 while it is not active',
  ),
  // Not named `instance`: Prometheus adds a label of that name to each sample.
  standbyLag: gauge(
    'mesh_na_standby_lag_revisions',
    'How many revisions the state of a standby is behind; NaN while it has none',
    'standby',
  ),
  formerStandbys: gauge(
    'mesh_na_link_followers',
    'The name of mesh_na_standbys until the next release',
  ),
  formerStandbyLag: gauge(
    'mesh_na_follower_lag_revisions',
    'The name of mesh_na_standby_lag_revisions until the next release',
    'follower',
  ),
  leaseConfirmations: histogram(
    'mesh_na_lease_confirmation_seconds',
    'Time the database took to confirm that this instance is still active; answers from memory wait for it',
    STORE_SECONDS,
  ),
};

/** The roles, and their names until the next release. */
const ROLES = { active: 'writer', standby: 'follower' } as const;

/** The metrics of an instance that shares a database with others: about itself and the others. */
function createInstanceMetrics(registry: Registry) {
  const metrics = register(registry, OF_INSTANCES);
  return {
    /** Sets the gauges when the metrics are read. */
    instanceStatus(
      instanceStatus: InstanceStatus,
      standbys: readonly SeenInstance[],
      leaseRemaining: number,
    ): void {
      const own = instanceStatus.isActive() ? 'active' : 'standby';
      for (const [role, former] of Object.entries(ROLES)) {
        for (const label of [role, former]) metrics.role.set({ role: label }, role === own ? 1 : 0);
      }
      metrics.leaseRemaining.set(leaseRemaining / 1000);
      metrics.lag.set(instanceStatus.lag() ?? Number.NaN);
      metrics.stale.set(instanceStatus.isVacant() ? 1 : 0);
      for (const name of ['standbys', 'formerStandbys'] as const) {
        metrics[name].set(standbys.length);
      }
      for (const name of ['standbyLag', 'formerStandbyLag'] as const) metrics[name].reset();
      for (const { id, lag } of standbys) {
        metrics.standbyLag.set({ standby: id }, lag ?? Number.NaN);
        metrics.formerStandbyLag.set({ follower: id }, lag ?? Number.NaN);
      }
    },
    /** How far this machine's clock is ahead of the database's; negative if behind. */
    databaseClock: (aheadMs: number): void => metrics.databaseClock.set(aheadMs / 1000),
    /** The database took this long to confirm that this instance is still active. */
    leaseConfirmed: (milliseconds: number): void =>
      metrics.leaseConfirmations.observe(milliseconds / 1000),
  };
}
