/** Operator keys [core-4-9], [core-4-19]. */
import Type from 'typebox';
import {
  OperatorKeyAdded,
  OperatorKeyList,
  OperatorKeyRevocation,
  OperatorKeyTier,
} from '../answers/operators.ts';
import { TIERS } from '../rows/operator-key.ts';
import { operatorQuery, privilegedCommand } from './define.ts';
import { optional, PublicKey, required, Text } from './members.ts';

const tier = required(Type.Enum([...TIERS]), 'invalid_operator_tier');

const NEEDS_KEY = { what: 'the id of an operator key', otherwise: 'unknown_operator_key' } as const;

export const listOperatorKeys = operatorQuery('GET /admin/operator-keys', {
  summary: 'All operator keys, usable and revoked',
  answer: OperatorKeyList,
});

export const addOperatorKey = privilegedCommand('POST /admin/operator-keys', {
  summary: 'Add an operator key, usable at once and after every start',
  body: {
    key_id: required(
      Type.String({ pattern: '^[A-Za-z0-9_@][A-Za-z0-9_@.-]{0,127}$' }),
      'invalid_operator_key_id',
    ),
    public_key: required(PublicKey, 'invalid_operator_public_key'),
    tier,
  },
  answer: OperatorKeyAdded,
  refusals: ['private_key_given', 'operator_key_exists'],
});

export const setOperatorKeyTier = privilegedCommand('POST /admin/operator-keys/{key_id}/tier', {
  summary: 'Change the tier of an operator key that was added',
  body: { tier },
  exampleNeeds: NEEDS_KEY,
  answer: OperatorKeyTier,
  refusals: [
    'unknown_operator_key',
    'operator_key_revoked',
    'operator_key_configured',
    'last_privileged_operator_key',
  ],
});

export const revokeOperatorKey = privilegedCommand('POST /admin/operator-keys/{key_id}/revoke', {
  summary: 'Switch an operator key off for good',
  body: {
    reason: optional(Text, 'unspecified'),
    unless_last_privileged: optional(
      Type.Boolean({ description: 'Refuse it if no privileged key would be left' }),
      false,
    ),
  },
  exampleNeeds: NEEDS_KEY,
  answer: OperatorKeyRevocation,
  refusals: ['unknown_operator_key', 'last_active_operator_key', 'last_privileged_operator_key'],
});
