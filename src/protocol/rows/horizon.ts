/** What lapses, and when [core-4-20]. */
import Type, { type Static } from 'typebox';
import { Datetime } from '../records/record.ts';

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

export const LapsingWeek = Type.Object({
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
