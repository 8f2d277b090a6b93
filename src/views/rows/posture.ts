/** What the dashboard says is wrong [core-6-5]. */
import Type, { type Static } from 'typebox';

export const PostureFinding = Type.Object({
  /** The name of the rule, which does not change. */
  rule: Type.String(),
  severity: Type.Enum(['attention', 'action']),
  sentence: Type.String(),
});

export const Posture = Type.Object({
  status: Type.Enum(['ok', 'attention', 'action']),
  findings: Type.Array(PostureFinding),
});

export type PostureFinding = Static<typeof PostureFinding>;
export type Posture = Static<typeof Posture>;
