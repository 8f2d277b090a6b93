/** The problems that the dashboard reports [core-6-5]. */
import Type, { type Static } from 'typebox';
import { Datetime } from '../records/record.ts';

export const PostureFinding = Type.Object({
  /** The stable name of the rule. */
  rule: Type.String(),
  severity: Type.Enum(['attention', 'action']),
  sentence: Type.String(),
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
