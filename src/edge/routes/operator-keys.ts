/** Operator keys [core-4-9], [core-4-19]. */
import Type from 'typebox';
import {
  OperatorKeyAdded,
  OperatorKeyList,
  OperatorKeyRevocation,
  OperatorKeyTier,
} from '../../protocol/answers/operators.ts';
import { TIERS } from '../../protocol/rows/operator-key.ts';
import { bodyReader, mapped } from '../body.ts';
import { NOTHING, type RouteEntry } from '../route.ts';
import { operatorRoute } from './operator-route.ts';
import { PublicKey, Text } from './scalars.ts';

const tier = Type.Enum([...TIERS]);

const addBody = bodyReader(
  Type.Object({
    key_id: Type.String({ pattern: '^[A-Za-z0-9_@][A-Za-z0-9_@.-]{0,127}$' }),
    public_key: PublicKey,
    tier,
  }),
  {
    codes: {
      key_id: 'invalid_operator_key_id',
      public_key: 'invalid_operator_public_key',
      tier: 'invalid_operator_tier',
    },
  },
);

const tierBody = bodyReader(Type.Object({ tier }), { codes: { tier: 'invalid_operator_tier' } });

const revokeBody = bodyReader(
  Type.Object({
    reason: Type.Optional(Text),
    unless_last_privileged: Type.Optional(
      Type.Boolean({ description: 'Refuse it if no privileged key would be left' }),
    ),
  }),
);

const NEEDS_KEY = {
  what: 'the id of an operator key',
  otherwise: 'unknown_operator_key',
} as const;

export const operatorKeyRoutes: readonly RouteEntry[] = [
  operatorRoute({
    method: 'GET',
    path: '/admin/operator-keys',
    call: 'listOperatorKeys',
    limit: 'none',
    summary: 'All operator keys, usable and revoked',
    answer: OperatorKeyList,
    refusals: [],
    input: () => NOTHING,
  }),
  operatorRoute({
    method: 'POST',
    path: '/admin/operator-keys',
    call: 'addOperatorKey',
    limit: 'ADMIN',
    summary: 'Add an operator key, usable at once and after every start',
    body: addBody.schema,
    answer: OperatorKeyAdded,
    refusals: [
      'invalid_operator_key_id',
      'invalid_operator_public_key',
      'invalid_operator_tier',
      'private_key_given',
      'operator_key_exists',
    ],
    input: (request) =>
      mapped(addBody.read(request.body), (body) => ({
        keyId: body.key_id,
        publicKey: body.public_key,
        tier: body.tier,
      })),
  }),
  operatorRoute({
    method: 'POST',
    path: '/admin/operator-keys/{key_id}/tier',
    call: 'setOperatorKeyTier',
    limit: 'ADMIN',
    summary: 'Change the tier of an operator key that was added',
    body: tierBody.schema,
    exampleNeeds: NEEDS_KEY,
    answer: OperatorKeyTier,
    refusals: [
      'invalid_operator_tier',
      'unknown_operator_key',
      'operator_key_revoked',
      'operator_key_configured',
      'last_privileged_operator_key',
    ],
    input(request) {
      const keyId = request.params.key_id ?? '';
      return mapped(tierBody.read(request.body), (body) => ({ keyId, tier: body.tier }));
    },
  }),
  operatorRoute({
    method: 'POST',
    path: '/admin/operator-keys/{key_id}/revoke',
    call: 'revokeOperatorKey',
    limit: 'ADMIN',
    summary: 'Switch an operator key off for good',
    body: revokeBody.schema,
    exampleNeeds: NEEDS_KEY,
    answer: OperatorKeyRevocation,
    refusals: ['unknown_operator_key', 'last_active_operator_key', 'last_privileged_operator_key'],
    input(request) {
      const keyId = request.params.key_id ?? '';
      return mapped(revokeBody.read(request.body), (body) => ({
        keyId,
        reason: body.reason ?? 'unspecified',
        unlessLastPrivileged: body.unless_last_privileged ?? false,
      }));
    },
  }),
];
