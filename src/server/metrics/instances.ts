/** What an instance among others on one database counts of itself, of the others and of the link between them. */
import { Gauge, Histogram, type Registry } from 'prom-client';
import { STORE_SECONDS } from '../../edge/metric-buckets.ts';
import type { InstanceStatus, LinkedFollower } from '../../protocol/contract/instance-status.ts';

export interface InstanceMetrics {
  /** The state of things, when the metrics are read. */
  instanceStatus(
    instanceStatus: InstanceStatus,
    linked: readonly LinkedFollower[],
    leaseRemaining: number,
  ): void;
  /** So far is this machine ahead of the database, or behind it. */
  databaseClock(aheadMs: number): void;
  /** The writer has answered a follower after so long, over the link. */
  linkAnswered(milliseconds: number): void;
  /** The database has taken so long to say whether this instance still writes. */
  leaseConfirmed(milliseconds: number): void;
}

const ROLES = ['writer', 'follower'] as const;

export function createInstanceMetrics(registry: Registry): InstanceMetrics {
  const registers = [registry];
  const role = new Gauge({
    name: 'mesh_na_instance_role',
    help: '1 for the role of this instance among those on one database',
    labelNames: ['role'] as const,
    registers,
  });
  const lease = new Gauge({
    name: 'mesh_na_lease_remaining_seconds',
    help: 'How long this instance may write without a renewal; 0 while it does not write',
    registers,
  });
  const lag = new Gauge({
    name: 'mesh_na_replica_lag_revisions',
    help: 'How many revisions the state that this instance keeps ready is behind; NaN while it keeps none',
    registers,
  });
  const stale = new Gauge({
    name: 'mesh_na_serving_stale',
    help: '1 while this instance reaches neither the database nor a writer, and serves its last copies',
    registers,
  });
  const databaseClock = new Gauge({
    name: 'mesh_na_database_clock_difference_seconds',
    help: 'How far the clock of this machine is at least ahead of that of the database; negative when behind',
    registers,
  });
  const followers = new Gauge({
    name: 'mesh_na_link_followers',
    help: 'How many followers are linked to this instance; 0 while it does not write',
    registers,
  });
  const followerLag = new Gauge({
    name: 'mesh_na_follower_lag_revisions',
    help: 'How many revisions the state that a linked follower keeps ready is behind; NaN while it keeps none',
    // What scrapes a target labels each sample of it with its own `instance`.
    labelNames: ['follower'] as const,
    registers,
  });
  const linkAnswers = new Histogram({
    name: 'mesh_na_link_round_trip_seconds',
    help: 'Time until the instance that writes has answered this follower over the link',
    buckets: STORE_SECONDS,
    registers,
  });
  const leaseConfirmations = new Histogram({
    name: 'mesh_na_lease_confirmation_seconds',
    help: 'Time until the database has confirmed that this instance still writes, which answers from memory wait for',
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
