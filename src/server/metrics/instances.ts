/**
 * The metrics of an instance that shares a database with others: about itself and the others.
 */
import type { Registry } from 'prom-client';
import { STORE_SECONDS } from '../../protocol/contract/history-cells.ts';
import type { InstanceStatus } from '../../protocol/contract/instance-status.ts';
import type { SeenInstance } from '../../store/postgresql/instances.ts';
import { gauge, histogram, register } from './definitions.ts';

const DEFINITIONS = {
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

export function createInstanceMetrics(registry: Registry) {
  const metrics = register(registry, DEFINITIONS);
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
