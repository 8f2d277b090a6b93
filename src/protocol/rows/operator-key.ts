/** An operator key as operators see it [core-4-19]. */
import Type, { type Static } from 'typebox';
import { Datetime } from '../records/record.ts';

export const TIERS = ['standard', 'privileged'] as const;

export const OperatorKeyRow = Type.Object({
  key_id: Type.String(),
  /** Null for a key that was revoked before its public key was recorded. */
  public_key: Type.Union([Type.String(), Type.Null()]),
  tier: Type.Enum([...TIERS]),
  status: Type.Enum(['usable', 'revoked']),
  /** Whether the key comes from the configuration or an operator added it. */
  source: Type.Enum(['configuration', 'operator']),
  added_at: Type.Union([Datetime, Type.Null()]),
  added_by: Type.Union([Type.String(), Type.Null()]),
  revoked_at: Type.Union([Datetime, Type.Null()]),
  revoked_by: Type.Union([Type.String(), Type.Null()]),
  reason: Type.Union([Type.String(), Type.Null()]),
});

export type OperatorKeyRow = Static<typeof OperatorKeyRow>;
