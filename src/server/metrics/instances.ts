/**
 * The metrics of an instance that shares a database with others: about itself, the others, and the link between them.
 */
import { Gauge, Histogram, type Registry } from 'prom-client';
import { STORE_SECONDS } from '../../protocol/contract/history-cells.ts';
import type { InstanceStatus, LinkedFollower } from '../../protocol/contract/instance-status.ts';

export interface InstanceMetrics {
  /** Sets the gauges when the metrics are read. */
  instanceStatus(
    instanceStatus: InstanceStatus,
    linked: readonly LinkedFollower[],
    leaseRemaining: number,
  ): void;
  /** How far this machine's clock is ahead of the database's; negative if behind. */
  databaseClock(aheadMs: number): void;
  /** The writer took this long to answer a follower over the link. */
  linkAnswered(milliseconds: number): void;
  /** The database took this long to confirm that this instance is still the writer. */
  leaseConfirmed(milliseconds: number): void;
}

const ROLES = ['writer', 'follower'] as const;

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
    help: 'How long this instance may keep writing without renewing its lease; 0 while it is not the writer',
    registers,
  });
  const lag = new Gauge({
    name: 'mesh_na_replica_lag_revisions',
    help: 'How many revisions the standby state of this instance is behind; NaN while it has none',
    registers,
  });
  const stale = new Gauge({
    name: 'mesh_na_serving_stale',
    help: '1 while this instance can reach neither the database nor a writer and serves its last copies',
    registers,
  });
  const databaseClock = new Gauge({
    name: 'mesh_na_database_clock_difference_seconds',
    help: 'How far the clock of this machine is ahead of the database clock, at least; negative if behind',
    registers,
  });
  const followers = new Gauge({
    name: 'mesh_na_link_followers',
    help: 'How many followers are linked to this instance; 0 while it is not the writer',
    registers,
  });
  const followerLag = new Gauge({
    name: 'mesh_na_follower_lag_revisions',
    help: 'How many revisions the standby state of a linked follower is behind; NaN while it has none',
    // Not named `instance`: Prometheus adds a label of that name to each sample.
    labelNames: ['follower'] as const,
    registers,
  });
  const linkAnswers = new Histogram({
    name: 'mesh_na_link_round_trip_seconds',
    help: 'Time the writer took to answer this follower over the link',
    buckets: STORE_SECONDS,
    registers,
  });
  const leaseConfirmations = new Histogram({
    name: 'mesh_na_lease_confirmation_seconds',
    help: 'Time the database took to confirm that this instance is still the writer; answers from memory wait for it',
    buckets: STORE_SECONDS,
    registers,
  });

  return {
    instanceStatus(instanceStatus, linked, leaseRemaining) {
      const own = instanceStatus.isWriter() ? 'writer' : 'follower';
      for (const one of ROLES) role.set({ role: one }, one === own ? 1 : 0);
      lease.set(leaseRemaining / 1000);
      lag.set(instanceStatus.lag() ?? Number.NaN);
      stale.set(instanceStatus.staleSince() === null ? 0 : 1);
      followers.set(linked.length);
      followerLag.reset();
      for (const { instance: follower, lag: behind } of linked) {
        followerLag.set({ follower }, behind ?? Number.NaN);
      }
    },
    databaseClock: (aheadMs) => databaseClock.set(aheadMs / 1000),
    linkAnswered: (milliseconds) => linkAnswers.observe(milliseconds / 1000),
    leaseConfirmed: (milliseconds) => leaseConfirmations.observe(milliseconds / 1000),
  };
}
