/** The dashboard document and its rows [core-6-5]. */
import Type, { type Static } from 'typebox';
import { Datetime, Natural, Whole } from '../records/record.ts';
import { ADOPTION_STATES } from './adoption.ts';
import { type ConnectomeSummary, EdgeRow } from './graph.ts';
import { HorizonSummary } from './horizon.ts';
import { Fleet, Posture } from './posture.ts';
import { FetchState } from './treaty.ts';

const DisplayTime = Type.String();
const Freshness = Type.Enum(['fresh', 'watch', 'stale']);

export const DashboardTreaty = Type.Object({
  ...Type.Omit(EdgeRow, ['from', 'to']).properties,
  issuer_sovereign_id: Type.String(),
  subject_sovereign_id: Type.String(),
  valid_from_display: DisplayTime,
  expires_at_display: DisplayTime,
  revoked_at: Type.Union([Datetime, Type.Null()]),
  revocation_reason: Type.Union([Type.String(), Type.Null()]),
});

export const TreatySummary = Type.Object({
  total: Type.Integer(),
  active: Type.Integer(),
  expiring_soon: Type.Integer(),
  expired: Type.Integer(),
  revoked: Type.Integer(),
  replaced: Type.Integer(),
  warning_count: Type.Integer(),
});

/** The newest imported feed of an issuer. */
export const DashboardFeed = Type.Object({
  feed_id: Type.String(),
  issuer_sovereign_id: Type.String(),
  sequence: Natural,
  revoked_count: Type.Integer(),
  imported_at: Datetime,
  imported_at_display: DisplayTime,
  age_hours: Type.Integer(),
  freshness: Freshness,
});

export const FeedSummary = Type.Object({
  count: Type.Integer(),
  freshness: Type.Enum(['none', 'fresh', 'watch', 'stale']),
  stale_count: Type.Integer(),
  watch_count: Type.Integer(),
});

export const TrustCycleSummary = Type.Object({
  status: Type.Enum(['not_observed', 'verified', 'failed']),
  freshness: Type.Enum(['none', 'fresh', 'watch', 'stale']),
  completed_at: Type.Union([Datetime, Type.Null()]),
  /** Empty before the first cycle. */
  completed_at_display: DisplayTime,
  age_hours: Type.Union([Type.Integer(), Type.Null()]),
  digest: Type.Optional(Type.String()),
});

export const RecentChangeRow = Type.Object({
  event_type: Type.String(),
  created_at: Datetime,
  created_at_display: DisplayTime,
  details: Whole,
  summary: Type.Object({
    title: Type.String(),
    state: Type.Enum(['recorded', 'revoked', 'rejected']),
    fields: Type.Array(Type.Object({ label: Type.String(), value: Type.String() })),
  }),
});

/** How far a change of the authority key has come. */
export const DashboardSuccession = Type.Object(
  {
    state: Type.Enum([...ADOPTION_STATES]),
    activates_at: Datetime,
    overlap_until: Datetime,
    active: Type.Integer({ description: 'Nodes that reported within the active-node window' }),
    followed: Type.Integer({
      description:
        'Those of them that know the statement and, once it is in force, have a certificate of the new key',
    }),
  },
  {
    description:
      'Only from when a statement is staged until the end of its overlap, and for a week after a stolen key was replaced',
  },
);

/** One of the instances that answer together. */
export const DashboardInstance = Type.Object({
  instance: Type.String({ description: 'As in its `/readyz`' }),
  role: Type.Enum(['active', 'standby']),
  lag_revisions: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()], {
    description:
      'How many revisions its standby state is behind, not counting the last second; null while it has none',
  }),
});

/** The authority of another sovereign that is fetched. */
export const DashboardPartner = Type.Object({
  subject_sovereign_id: Type.String(),
  endpoint: Type.String(),
  ...FetchState.properties,
});

/** The published schema allows additional members; the types list the current ones. */
const AnyCounts = Type.Record(Type.String(), Type.Integer());
const AnyRows = Type.Array(Type.Object({}, { additionalProperties: true }));
const AnyStatus = Type.Object({ status: Type.String() }, { additionalProperties: true });

export const Dashboard = Type.Object({
  sovereign: Type.Object({ id: Type.String(), version: Type.String() }),
  readiness: Type.Object({ status: Type.Enum(['ready', 'not_ready']) }),
  nodes: Type.Object({ active: Type.Integer(), tracked: Type.Integer() }),
  fleet: Type.Union([Fleet, Type.Null()]),
  connectome_summary: Type.Unsafe<ConnectomeSummary>(AnyCounts),
  treaty_summary: Type.Unsafe<TreatySummary>(AnyCounts),
  treaties: Type.Unsafe<DashboardTreaty[]>(AnyRows),
  revocation_feed_summary: FeedSummary,
  revocation_feeds: Type.Unsafe<DashboardFeed[]>(AnyRows),
  trust_cycle_summary: Type.Unsafe<TrustCycleSummary>(AnyStatus),
  recent_changes: Type.Unsafe<RecentChangeRow[]>(AnyRows),
  horizon_summary: HorizonSummary,
  succession: Type.Optional(DashboardSuccession),
  instances: Type.Optional(
    Type.Array(DashboardInstance, {
      description: 'The instances that answer together; absent if instances are not linked',
    }),
  ),
  partners: Type.Optional(
    Type.Array(DashboardPartner, {
      description: 'At most 100, those that fail first; absent if no treaty has an endpoint',
    }),
  ),
  posture: Posture,
  warnings: Type.Array(Type.String()),
  links: Type.Record(Type.String(), Type.String()),
});

export type DashboardTreaty = Static<typeof DashboardTreaty>;
export type TreatySummary = Static<typeof TreatySummary>;
export type DashboardFeed = Static<typeof DashboardFeed>;
export type FeedSummary = Static<typeof FeedSummary>;
export type TrustCycleSummary = Static<typeof TrustCycleSummary>;
export type DashboardSuccession = Static<typeof DashboardSuccession>;
export type DashboardInstance = Static<typeof DashboardInstance>;
export type DashboardPartner = Static<typeof DashboardPartner>;
export type RecentChangeRow = Static<typeof RecentChangeRow>;
export type Dashboard = Static<typeof Dashboard>;
