/**
 * Metrics in the Prometheus text form ([core-4-15] and more). Labels are route templates, methods, statuses, values
 * from closed lists, and the few linked instances; never node ids, key ids or raw paths. Each edge counts the requests
 * it serves; the authority counts everything else and aggregates.
 */
import { AggregatorRegistry, collectDefaultMetrics, Registry } from 'prom-client';
import type { MetricsReport } from '../../edge/metrics.ts';
import { REQUEST_SECONDS, STORE_SECONDS } from '../../protocol/contract/history-cells.ts';
import type { RefusalName } from '../../protocol/refusals.ts';
import { AUDIT_EVENTS } from '../../protocol/rows/audit-event.ts';
import { counter, gauge, histogram, register } from './definitions.ts';
import { createInstanceMetrics } from './instances.ts';
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
  const setCounts = createStateMetrics(registry);
  const metrics = register(registry, DEFINITIONS);
  setFirst(metrics, version);
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
      if (typeof counts !== 'string') setCounts(counts);
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
