/** What the dashboard says is wrong [core-6-5]. */
import Type, { type Static } from 'typebox';
import { Datetime } from '../records/record.ts';

export const PostureFinding = Type.Object({
  /** The name of the rule, which does not change. */
  rule: Type.String(),
  severity: Type.Enum(['attention', 'action']),
  sentence: Type.String(),
});

/** A rule that cannot be judged yet: nothing found does not mean that all is well. */
export const PostureUnknown = Type.Object({
  rule: Type.String(),
  sentence: Type.String(),
  /** When it is known at the latest; null where that is a matter of moments. */
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
