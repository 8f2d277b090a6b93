/** Events as readers get them [events-3]. */
import Type, { type Static } from 'typebox';
import { Timestamp } from './scalars.ts';

/** An entry of the audit log [core-4-16] without its hash, with members that this version may not know. */
export const LoggedEntry = Type.Object({
  event_id: Type.String(),
  event_type: Type.String(),
  details: Type.Record(Type.String(), Type.Unknown()),
  created_at: Timestamp,
  /** The operator key that caused it; absent when none did. */
  actor_key_id: Type.Optional(Type.String()),
  prev_hash: Type.String(),
});

export type LoggedEntry = Static<typeof LoggedEntry>;
