/** Routes for operators to create, read and withdraw invites [core-4-7], [core-4-18]. */
import Type from 'typebox';
import {
  Invite,
  InviteBatchWithdrawal,
  InviteList,
  InviteWithdrawal,
} from '../../protocol/answers/operators.ts';
import type { Input } from '../../protocol/contract/claims.ts';
import type { InviteFilter } from '../../protocol/contract/inputs.ts';
import {
  BatchLabel,
  INVITE_STATUSES,
  isBatchLabel,
  numberedName,
} from '../../protocol/rows/invite.ts';
import {
  isNodeName,
  labelTexts,
  NodeLabels,
  NodeName,
} from '../../protocol/rows/node-description.ts';
import { bodyReader, mapped, refused } from '../body.ts';
import { firstValue, type Query } from '../query.ts';
import { operatorOf, type RouteEntry } from '../route.ts';
import { filter, filteredPage, listReply, PAGE_QUERY, PAGE_REFUSALS } from './listing.ts';
import { DESCRIPTION_QUERY, descriptionFilter } from './node-descriptions.ts';
import { operatorRoute } from './operator-route.ts';
import { areAllowedRoles, hours, MAX_VALIDITY_HOURS, PublicKey } from './scalars.ts';

const MAX_TOKEN_EXPIRY_HOURS = 8760;
const MAX_INVITES = 1000;

const inviteBody = bodyReader(
  Type.Object({
    roles: Type.Optional(Type.Array(Type.String())),
    max_validity_hours: Type.Optional(hours(MAX_VALIDITY_HOURS)),
    token_expiry_hours: Type.Optional(hours(MAX_TOKEN_EXPIRY_HOURS)),
    recipient_public_key: Type.Optional(PublicKey),
    count: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_INVITES })),
    batch: Type.Optional(BatchLabel),
    name: Type.Optional(NodeName),
    labels: Type.Optional(NodeLabels),
  }),
  {
    wholeNumbers: ['max_validity_hours', 'token_expiry_hours'],
    tests: {
      allowed_roles: ({ roles }, isAllowed) => areAllowedRoles(roles, isAllowed),
      numbered_name: ({ name, count = 1 }) =>
        typeof name !== 'string' || isNodeName(numberedName(name, Number(count))),
    },
    codes: {
      max_validity_hours: 'invalid_max_validity_hours',
      token_expiry_hours: 'invalid_token_expiry_hours',
      roles: 'invalid_role',
      allowed_roles: 'invalid_role',
      recipient_public_key: 'invalid_recipient_public_key',
      count: 'invalid_count',
      batch: 'invalid_batch',
      name: 'invalid_name',
      numbered_name: 'invalid_name',
      labels: 'invalid_labels',
    },
  },
);

const batchBody = bodyReader(Type.Object({ batch: BatchLabel }), {
  codes: { batch: 'invalid_batch' },
});

export const inviteRoutes: readonly RouteEntry[] = [
  operatorRoute({
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
      'invalid_batch',
      'invalid_name',
      'invalid_labels',
      'private_key_given',
      'insufficient_storage',
    ],
    input(request, edge) {
      const read = inviteBody.read(request.body, edge.settings.isAllowedRole);
      return mapped(read, (body) => ({
        roles: body.roles ?? ['role:client'],
        maxValidityHours: body.max_validity_hours ?? 168,
        tokenExpiryHours: body.token_expiry_hours ?? 24,
        recipient: body.recipient_public_key ?? null,
        count: body.count ?? null,
        batch: body.batch ?? null,
        name: body.name ?? null,
        labels: body.labels === undefined ? null : labelTexts(body.labels),
      }));
    },
  }),
  {
    method: 'GET',
    path: '/admin/invites',
    call: 'listInvites',
    limit: 'none',
    query: Type.Object({
      status: Type.Optional(
        Type.Enum([...INVITE_STATUSES], { description: 'Only those with this status' }),
      ),
      batch: filter('Only those of this batch'),
      ...DESCRIPTION_QUERY,
      fingerprint: filter('Only those whose fingerprint begins with this'),
      ...PAGE_QUERY,
    }),
    summary: 'Invites by fingerprint, never with their tokens',
    answer: InviteList,
    refusals: [
      ...PAGE_REFUSALS,
      'invalid_invite_status',
      'invalid_batch',
      'invalid_name',
      'invalid_labels',
    ],
    handle(request, edge) {
      const operator = operatorOf(request);
      const page = filteredPage(
        inviteFilter(request.query),
        (input) => edge.call('listInvites', { operator, input }),
        (next) => edge.call('readInvitePage', next),
      );
      return listReply({ member: 'invites', isCounted: true, page }, request);
    },
  },
  operatorRoute({
    method: 'POST',
    path: '/admin/invites/{fingerprint}/withdraw',
    call: 'withdrawInvite',
    limit: 'ADMIN',
    summary: 'Withdraw an invite that was not used',
    answer: InviteWithdrawal,
    exampleNeeds: { what: 'the fingerprint of an invite', otherwise: 'invite_not_found' },
    refusals: ['invite_not_found', 'invite_consumed'],
    input(request) {
      const value = { fingerprint: request.params.fingerprint ?? '' };
      return { ok: true, value };
    },
  }),
  operatorRoute({
    method: 'POST',
    path: '/admin/invites/withdraw',
    call: 'withdrawInviteBatch',
    limit: 'ADMIN',
    summary: 'Withdraw the unused invites of a batch',
    body: batchBody.schema,
    answer: InviteBatchWithdrawal,
    exampleNeeds: { what: 'a batch of invites', otherwise: 'batch_not_found' },
    refusals: ['invalid_batch', 'batch_not_found'],
    input: (request) => batchBody.read(request.body),
  }),
];

function inviteFilter(query: Query): Input<InviteFilter> {
  const status = firstValue(query, 'status');
  const known = INVITE_STATUSES.find((name) => name === status) ?? null;
  if (known !== status) return refused('invalid_invite_status');
  const batch = firstValue(query, 'batch');
  if (batch !== null && !isBatchLabel(batch)) {
    return refused('invalid_batch');
  }
  const fingerprint = firstValue(query, 'fingerprint');
  return mapped(descriptionFilter(query), (described) => ({
    status: known,
    batch,
    ...described,
    fingerprint,
  }));
}
