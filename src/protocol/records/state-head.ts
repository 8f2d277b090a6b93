/**
 * The head of a state [backup-8]: identifies the newest state, and is kept where it is not lost together with the
 * state.
 */
import Type, { type Static } from 'typebox';
import { Datetime, recordReader, Signatures } from './record.ts';

const Count = Type.Integer({ minimum: 0 });
const Sequence = Type.Integer({ minimum: -1 });

export const StateHead = Type.Object({
  format: Type.Literal('mesh-na-head'),
  format_version: Type.Literal(1),
  network_name: Type.String(),
  epoch: Count,
  revision: Count,
  audit_length: Count,
  audit_head: Type.String(),
  crl_sequence: Sequence,
  feed_sequence: Sequence,
  operator_keys_off: Type.Array(Type.String()),
  written_at: Datetime,
  signatures: Signatures,
});

export type StateHead = Static<typeof StateHead>;

export const readStateHead = recordReader(StateHead);
