/** Operator routes for nodes and keys [core-4-7] to [core-4-9], [core-4-15]. */
import Type from 'typebox';
import { Invite, NodeCount, OperatorKeyRevocation, Revocation } from '../answers/operators.ts';
import { bodyReader, mapped } from '../http/body.ts';
import { answerReply } from '../http/reply.ts';
import { operatorOf, type RouteEntry } from '../http/route.ts';
import { REVOCATION_REASONS } from '../records/revocation-list.ts';
import { reasonBody } from './reason.ts';
import { rosterReply } from './roster.ts';
import { areAllowedRoles, Filled, hours, MAX_VALIDITY_HOURS, PublicKey } from './scalars.ts';

const MAX_TOKEN_EXPIRY_HOURS = 8760;
const MAX_INVITES = 1000;

const inviteBody = bodyReader(
  Type.Object({
    roles: Type.Optional(Type.Array(Type.String())),
    max_validity_hours: Type.Optional(hours(MAX_VALIDITY_HOURS)),
    token_expiry_hours: Type.Optional(hours(MAX_TOKEN_EXPIRY_HOURS)),
    recipient_public_key: Type.Optional(PublicKey),
    count: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_INVITES })),
  }),
  {
    wholeNumbers: ['max_validity_hours', 'token_expiry_hours'],
    tests: { allowed_roles: ({ roles }, isAllowed) => areAllowedRoles(roles, isAllowed) },
    codes: {
      max_validity_hours: 'invalid_max_validity_hours',
      token_expiry_hours: 'invalid_token_expiry_hours',
      roles: 'invalid_role',
      allowed_roles: 'invalid_role',
      recipient_public_key: 'invalid_recipient_public_key',
      count: 'invalid_count',
    },
  },
);

const revokeBody = bodyReader(
  Type.Object({
    cert_id: Filled,
    reason: Type.Optional(Type.Enum([...REVOCATION_REASONS])),
  }),
  { codes: { cert_id: 'missing_cert_id', reason: 'invalid_revocation_reason' } },
);

export const operatorRoutes: readonly RouteEntry[] = [
  {
    method: 'GET',
    path: '/nodes',
    call: 'countNodes',
    operatorCall: 'openRoster',
    limit: 'none',
    summary: 'Count of active nodes; with operator headers, their roster',
    description:
      'Operator headers that fail verification give 401, never the public form. A long roster is sent while it is read.',
    answer: NodeCount,
    refusals: [],
    handle: async ({ operator }, edge) =>
      operator === null
        ? answerReply(await edge.call('countNodes', null))
        : rosterReply(operator, edge),
  },
  {
    method: 'POST',
    path: '/admin/invite',
    call: 'createInvites',
    limit: 'ADMIN',
    created: 'as_configured',
    summary: 'Create single-use invite tokens',
    body: inviteBody.schema,
    answer: Invite,
    refusals: [
      'invalid_max_validity_hours',
      'invalid_token_expiry_hours',
      'invalid_role',
      'invalid_recipient_public_key',
      'invalid_count',
    ],
    async handle(request, edge) {
      const read = inviteBody.read(request.body, edge.settings.isAllowedRole);
      const input = mapped(read, (body) => ({
        roles: body.roles ?? ['role:client'],
        maxValidityHours: body.max_validity_hours ?? 168,
        tokenExpiryHours: body.token_expiry_hours ?? 24,
        recipient: body.recipient_public_key ?? null,
        count: body.count ?? null,
      }));
      return answerReply(
        await edge.call('createInvites', { operator: operatorOf(request), input }),
      );
    },
  },
  {
    method: 'POST',
    path: '/admin/revoke',
    call: 'revokeCertificate',
    limit: 'ADMIN',
    summary: 'Revoke a node certificate and publish a new CRL',
    body: revokeBody.schema,
    exampleNeeds: { what: 'a certificate of this network', otherwise: 'certificate_not_found' },
    answer: Revocation,
    refusals: ['missing_cert_id', 'invalid_revocation_reason', 'certificate_not_found'],
    async handle(request, edge) {
      const input = mapped(revokeBody.read(request.body), ({ cert_id, reason }) => ({
        certId: cert_id,
        reason: reason ?? 'unspecified',
      }));
      const command = { operator: operatorOf(request), input };
      return answerReply(await edge.call('revokeCertificate', command));
    },
  },
  {
    method: 'POST',
    path: '/admin/operator-keys/{key_id}/revoke',
    call: 'revokeOperatorKey',
    limit: 'ADMIN',
    summary: 'Switch an operator key off for good',
    body: reasonBody.schema,
    exampleNeeds: { what: 'the id of a configured key', otherwise: 'unknown_operator_key' },
    answer: OperatorKeyRevocation,
    refusals: ['unknown_operator_key', 'last_active_operator_key'],
    async handle(request, edge) {
      const keyId = request.params.key_id ?? '';
      const input = mapped(reasonBody.read(request.body), ({ reason }) => ({ keyId, reason }));
      const command = { operator: operatorOf(request), input };
      return answerReply(await edge.call('revokeOperatorKey', command));
    },
  },
];
