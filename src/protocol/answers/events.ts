/** Events as readers receive them [events-3]. */
import Type, { type Static } from 'typebox';
import { Datetime } from '../records/record.ts';

/** An entry of the audit log [core-4-16] without its hash; it may have members that this version does not know. */
export const LoggedEntry = Type.Object({
  event_id: Type.String(),
  event_type: Type.String(),
  details: Type.Record(Type.String(), Type.Unknown()),
  created_at: Datetime,
  /** The operator key that caused the event; absent if none did. */
  actor_key_id: Type.Optional(Type.String()),
  prev_hash: Type.String(),
});

export type LoggedEntry = Static<typeof LoggedEntry>;
