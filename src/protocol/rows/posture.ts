/** The problems that the dashboard reports, and its counts of nodes, as a whole and by role [core-6-5]. */
import Type, { type Static } from 'typebox';
import { Datetime } from '../records/record.ts';

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
