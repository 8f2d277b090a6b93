/**
 * Metrics in the Prometheus text form ([core-4-15] and more). Labels are route templates, methods, statuses, values
 * from closed lists, and the few linked instances; never node ids, key ids or raw paths. Each edge counts the requests
 * it serves; the authority counts everything else and aggregates.
 */
import {
  AggregatorRegistry,
  Counter,
  collectDefaultMetrics,
  Gauge,
  Histogram,
  Registry,
} from 'prom-client';
import type { MetricsReport } from '../../edge/metrics.ts';
import { REQUEST_SECONDS, STORE_SECONDS } from '../../protocol/contract/history-cells.ts';
import type { RefusalName } from '../../protocol/refusals.ts';
import { AUDIT_EVENTS } from '../../protocol/rows/audit-event.ts';
import { createInstanceMetrics, type InstanceMetrics } from './instances.ts';
import { type AuthorityCounts, createStateMetrics } from './state.ts';

/** Metrics of instances exist only if the state is in a database. */
export interface AuthorityMetrics extends InstanceMetrics {
  /** Counts a refusal if its audit event is a failed authentication. */
  refused(event: string, reason: string): void;
  /** Counts an entry of the audit log; other events are only logged. */
  audited(event: string): void;
  operatorSignatureV1(): void;
  clockStepped(byMs: number): void;
  clockSkewed(byMs: number): void;
  stored(work: 'commit' | 'liveness_flush', seconds: number): void;
  /** A signature by the signer process took this long, or was not obtained in this time. */
  signed(seconds: number, signed: boolean): void;
  /** When the TLS certificate that is served expires, in milliseconds since the epoch. */
  tlsNotAfter(at: number): void;
  /** When the newest verified scheduled backup was made, in milliseconds since the epoch. */
  backupVerified(at: number): void;
  backupFailed(): void;
  /** A webhook at this host has accepted this many events. */
  webhookTook(host: string, events: number): void;
  webhookFailed(host: string): void;
  /** `now` in milliseconds since the epoch. */
  jobSucceeded(job: string, now: number): void;
  /**
   * All metrics as text: counts of the state, those of the authority, and those of the edges. If there are no counts,
   * the reason is passed instead.
   */
  exposition(
    counts: AuthorityCounts | RefusalName,
    edges: readonly MetricsReport[],
  ): Promise<string>;
  /** The metrics of the authority that the history is built from. */
  report(): Promise<MetricsReport>;
}

const AUDITED: ReadonlySet<string> = new Set(AUDIT_EVENTS);

export function createAuthorityMetrics(
  version: string,
  droppedLogLines: () => number,
): AuthorityMetrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry, prefix: 'mesh_na_' });
  const setCounts = createStateMetrics(registry);
  const signatures = new Histogram({
    name: 'mesh_na_signer_seconds',
    help: 'Time the signer took to answer, during which the authority is blocked',
    buckets: REQUEST_SECONDS,
    registers,
  });
  const unsigned = new Counter({
    name: 'mesh_na_signer_failures_total',
    help: 'Signatures that could not be obtained from the signer',
    registers,
  });
  const failures = new Counter({
    name: 'mesh_na_auth_failed_total',
    help: 'Failed authentications',
    labelNames: ['kind', 'reason'] as const,
    registers,
  });
  const audited = new Counter({
    name: 'mesh_na_audit_events_total',
    help: 'Entries added to the audit log',
    labelNames: ['event'] as const,
    registers,
  });
  // With a first value, the first event is an increase.
  for (const event of AUDIT_EVENTS) audited.inc({ event }, 0);
  const signaturesV1 = new Counter({
    name: 'mesh_na_operator_signature_v1_total',
    help: 'Operator requests admitted with a version 1 signature',
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
    help: 'How far the system clock is ahead of the time used by the service',
    registers,
  });
  const storeWork = new Histogram({
    name: 'mesh_na_store_seconds',
    help: 'Time for written state to reach the disk',
    labelNames: ['work'] as const,
    buckets: STORE_SECONDS,
    registers,
  });
  const restorePending = new Gauge({
    name: 'mesh_na_restore_pending',
    help: '1 while requests are refused because the state is older than what was published',
    registers,
  });
  const backupVerified = new Gauge({
    name: 'mesh_na_backup_verified_timestamp_seconds',
    help: 'When the newest verified scheduled backup was made, seconds since the epoch',
    registers,
  });
  backupVerified.set(Number.NaN);
  const backupFailures = new Counter({
    name: 'mesh_na_backup_failures_total',
    help: 'Scheduled backups that failed or could not be verified',
    registers,
  });
  const webhookEvents = new Counter({
    name: 'mesh_na_webhook_delivered_events_total',
    help: 'Events accepted by a webhook',
    labelNames: ['host'] as const,
    registers,
  });
  const webhookFailures = new Counter({
    name: 'mesh_na_webhook_failures_total',
    help: 'Requests that a webhook did not accept; they are retried',
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

  /** Set only if the authority itself serves TLS. */
  let tlsNotAfter: Gauge | null = null;

  let instances: InstanceMetrics | null = null;
  function ofInstances(): InstanceMetrics {
    instances ??= createInstanceMetrics(registry);
    return instances;
  }

  return {
    refused(event, reason) {
      if (event === 'admin_auth_failed') failures.inc({ kind: 'operator', reason });
      if (event === 'node_auth_failed') failures.inc({ kind: 'node', reason });
    },
    audited(event) {
      if (AUDITED.has(event)) audited.inc({ event });
    },
    clockStepped: (byMs) => clockSteps.inc({ direction: byMs > 0 ? 'forward' : 'back' }),
    clockSkewed: (byMs) => clockSkew.set(byMs / 1000),
    tlsNotAfter(at) {
      tlsNotAfter ??= new Gauge({
        name: 'mesh_na_tls_not_after_seconds',
        help: 'When the TLS certificate in use expires, seconds since the epoch',
        registers,
      });
      tlsNotAfter.set(at / 1000);
    },
    instanceStatus: (...state) => ofInstances().instanceStatus(...state),
    databaseClock: (aheadMs) => ofInstances().databaseClock(aheadMs),
    leaseConfirmed: (milliseconds) => ofInstances().leaseConfirmed(milliseconds),
    operatorSignatureV1: () => signaturesV1.inc(),
    signed(seconds, isSigned) {
      if (isSigned) signatures.observe(seconds);
      else unsigned.inc();
    },
    stored: (work, seconds) => storeWork.observe({ work }, seconds),
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
    report: () => Promise.all([failures, audited, clockSteps, storeWork].map((each) => each.get())),
  };
}
