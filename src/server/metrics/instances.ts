/**
 * The metrics of an instance that shares a database with others: about itself and the others.
 */
import { Gauge, Histogram, type Registry } from 'prom-client';
import { STORE_SECONDS } from '../../protocol/contract/history-cells.ts';
import type { InstanceStatus } from '../../protocol/contract/instance-status.ts';
import type { SeenInstance } from '../../store/postgresql/instances.ts';

export interface InstanceMetrics {
  /** Sets the gauges when the metrics are read. */
  instanceStatus(
    instanceStatus: InstanceStatus,
    standbys: readonly SeenInstance[],
    leaseRemaining: number,
  ): void;
  /** How far this machine's clock is ahead of the database's; negative if behind. */
  databaseClock(aheadMs: number): void;
  /** The database took this long to confirm that this instance is still active. */
  leaseConfirmed(milliseconds: number): void;
}

/** The roles, and their names until the next release. */
const ROLES = { active: 'writer', standby: 'follower' } as const;

export function createInstanceMetrics(registry: Registry): InstanceMetrics {
  const registers = [registry];
  const role = new Gauge({
    name: 'mesh_na_instance_role',
    help: '1 for the current role of this instance among those on one database',
    labelNames: ['role'] as const,
    registers,
  });
  const lease = new Gauge({
    name: 'mesh_na_lease_remaining_seconds',
    help: 'How long this instance may stay active without renewing its lease; 0 while it is not active',
    registers,
  });
  const lag = new Gauge({
    name: 'mesh_na_replica_lag_revisions',
    help: 'How many revisions the standby state of this instance is behind; NaN while it has none',
    registers,
  });
  const stale = new Gauge({
    name: 'mesh_na_serving_stale',
    help: '1 while this instance reaches neither a writable database nor an active instance, and serves last copies',
    registers,
  });
  const databaseClock = new Gauge({
    name: 'mesh_na_database_clock_difference_seconds',
    help: 'How far the clock of this machine is ahead of the database clock, at least; negative if behind',
    registers,
  });
  const seen = new Gauge({
    name: 'mesh_na_standbys',
    help: 'How many standbys this instance sees; 0 while it is not active',
    registers,
  });
  const standbyLag = new Gauge({
    name: 'mesh_na_standby_lag_revisions',
    help: 'How many revisions the state of a standby is behind; NaN while it has none',
    // Not named `instance`: Prometheus adds a label of that name to each sample.
    labelNames: ['standby'] as const,
    registers,
  });
  const seenBefore = new Gauge({
    name: 'mesh_na_link_followers',
    help: 'The name of mesh_na_standbys until the next release',
    registers,
  });
  const lagBefore = new Gauge({
    name: 'mesh_na_follower_lag_revisions',
    help: 'The name of mesh_na_standby_lag_revisions until the next release',
    labelNames: ['follower'] as const,
    registers,
  });
  const leaseConfirmations = new Histogram({
    name: 'mesh_na_lease_confirmation_seconds',
    help: 'Time the database took to confirm that this instance is still active; answers from memory wait for it',
    buckets: STORE_SECONDS,
    registers,
  });

  return {
    instanceStatus(instanceStatus, standbys, leaseRemaining) {
      const own = instanceStatus.isActive() ? 'active' : 'standby';
      for (const [name, before] of Object.entries(ROLES)) {
        for (const label of [name, before]) role.set({ role: label }, name === own ? 1 : 0);
      }
      lease.set(leaseRemaining / 1000);
      lag.set(instanceStatus.lag() ?? Number.NaN);
      stale.set(instanceStatus.isVacant() ? 1 : 0);
      for (const gauge of [seen, seenBefore]) gauge.set(standbys.length);
      for (const gauge of [standbyLag, lagBefore]) gauge.reset();
      for (const { id, lag: behind } of standbys) {
        standbyLag.set({ standby: id }, behind ?? Number.NaN);
        lagBefore.set({ follower: id }, behind ?? Number.NaN);
      }
    },
    databaseClock: (aheadMs) => databaseClock.set(aheadMs / 1000),
    leaseConfirmed: (milliseconds) => leaseConfirmations.observe(milliseconds / 1000),
  };
}
