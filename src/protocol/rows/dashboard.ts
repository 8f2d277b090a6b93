/** The dashboard document and its rows [core-6-5]. */
import Type, { type Static } from 'typebox';
import { Datetime, Natural, Whole } from '../records/record.ts';
import { ADOPTION_STATES } from './adoption.ts';
import { type ConnectomeSummary, EdgeRow } from './graph.ts';
import { FetchState } from './recognition.ts';

/** What lapses, and when [core-4-20]. */

export const LAPSING_KINDS = [
  /** The delegation of the root key to the authority. */
  'delegation',
  /** The current authority key: a staged one takes over. */
  'activation',
  /** The time in which the previous authority key signs, too. */
  'overlap',
  /** The TLS certificate, where the authority serves TLS itself. */
  'tls',
  /** Certificates of nodes that are neither revoked nor renewed. */
  'certificate',
  'treaty',
  'attestation',
  /** Sovereigns that cannot be fetched: their last imported feed becomes stale. */
  'partner',
  /** The data-license policy in force; no other policy lapses. */
  'policy',
] as const;

export type LapsingKind = (typeof LAPSING_KINDS)[number];

const LapsingWeek = Type.Object({
  /** Monday, 00:00 UTC. */
  week_from: Datetime,
  count: Type.Integer(),
});

export const Lapsing = Type.Object({
  kind: Type.Enum([...LAPSING_KINDS]),
  count: Type.Integer(),
  soonest: Datetime,
  /** The weeks in which something lapses, earliest first. */
  weeks: Type.Array(LapsingWeek),
});

/** Kinds with nothing that lapses are absent. */
export const Horizon = Type.Object({ as_of: Datetime, lapsing: Type.Array(Lapsing) });

/** How many items of all kinds lapse within given periods. */
export const HorizonSummary = Type.Object({
  within_day: Type.Integer(),
  within_week: Type.Integer(),
  within_month: Type.Integer(),
  /** Today and the seven days after, UTC; what has ended already counts today. */
  days: Type.Array(
    Type.Object({
      date: Type.String(),
      count: Type.Integer(),
      /** How many of each kind; kinds of which nothing lapses are absent. */
      kinds: Type.Record(Type.String(), Type.Integer()),
    }),
  ),
});

export type Lapsing = Static<typeof Lapsing>;
export type Horizon = Static<typeof Horizon>;
export type HorizonSummary = Static<typeof HorizonSummary>;

/** The problems that the dashboard reports, and its counts of nodes, as a whole and by role [core-6-5]. */

export const PostureFinding = Type.Object({
  /** The stable name of the rule. */
  rule: Type.String(),
  severity: Type.Enum(['attention', 'action']),
  sentence: Type.String(),
  /** Since when the rule has found something; authorities before this release do not say. */
  since: Type.Optional(Datetime),
});

/** A rule that cannot be evaluated yet: no finding does not mean that all is well. */
export const PostureUnknown = Type.Object({
  rule: Type.String(),
  sentence: Type.String(),
  /** When the rule can be evaluated at the latest; null if that is a matter of moments. */
  known_from: Type.Union([Datetime, Type.Null()]),
});

export const Posture = Type.Object({
  status: Type.Enum(['ok', 'attention', 'action']),
  findings: Type.Array(PostureFinding),
  unknown: Type.Array(PostureUnknown),
});

export type PostureFinding = Static<typeof PostureFinding>;
export type PostureUnknown = Static<typeof PostureUnknown>;
export type Posture = Static<typeof Posture>;

/** Nodes that have reported at least once, and whose certificate is in force. */
export const NodeCounts = Type.Object({
  expected: Type.Integer(),
  healthy: Type.Union([Type.Integer(), Type.Null()], {
    description: 'Neither unwell nor silent; null like `silent`',
  }),
  unwell: Type.Integer({
    description: 'Their last report was not healthy, even if they have been silent since',
  }),
  silent: Type.Union([Type.Integer(), Type.Null()], {
    description:
      'Without a report within the active-node window; null while some may not have had the time since the start',
  }),
  lapsing: Type.Integer({ description: 'Their certificate expires soon and was not renewed' }),
});

export const RoleCounts = Type.Object({ role: Type.String(), ...NodeCounts.properties });

export const Fleet = Type.Object({
  ...NodeCounts.properties,
  lapsed: Type.Integer({
    description: 'Nodes whose last certificate expired within the last thirty days',
  }),
  roles: Type.Array(RoleCounts, {
    description: 'The roles with the most nodes; a node counts in each of its roles',
  }),
  more_roles: Type.Integer({ description: 'How many other roles there are' }),
});

export type NodeCounts = Static<typeof NodeCounts>;
export type RoleCounts = Static<typeof RoleCounts>;
export type Fleet = Static<typeof Fleet>;

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
