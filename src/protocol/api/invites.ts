/** Invites: operators create, read and withdraw them [core-4-7], [core-4-18]. */
import Type from 'typebox';
import {
  Invite,
  InviteBatchWithdrawal,
  InviteList,
  InviteWithdrawal,
} from '../answers/operators.ts';
import { BatchLabel, INVITE_STATUSES, isBatchLabel, numberedName } from '../rows/invite.ts';
import { isNodeName, NodeLabels, NodeName } from '../rows/node-description.ts';
import { descriptionParameters } from './certificates.ts';
import { operatorCommand, operatorList } from './define.ts';
import {
  allowedRoles,
  hours,
  MAX_VALIDITY_HOURS,
  optional,
  PublicKey,
  required,
} from './members.ts';
import { choice, text } from './parameters.ts';

const MAX_TOKEN_EXPIRY_HOURS = 8760;
const MAX_INVITES = 1000;

export const createInvites = operatorCommand('POST /admin/invite', {
  created: 'as_configured',
  summary: 'Create single-use invite tokens',
  body: {
    max_validity_hours: optional(
      hours(MAX_VALIDITY_HOURS, 'Longest validity of a certificate of the node'),
      168,
      'invalid_max_validity_hours',
      { isLenient: true },
    ),
    token_expiry_hours: optional(
      hours(MAX_TOKEN_EXPIRY_HOURS, 'How long the token can be used'),
      24,
      'invalid_token_expiry_hours',
      { isLenient: true },
    ),
    roles: optional(
      Type.Array(Type.String(), { description: 'Roles of the node' }),
      ['role:client'],
      'invalid_role',
      { after: [allowedRoles(({ roles }) => roles)] },
    ),
    recipient_public_key: optional(PublicKey, null, 'invalid_recipient_public_key'),
    count: optional(
      Type.Integer({ minimum: 1, maximum: MAX_INVITES, description: 'How many tokens' }),
      null,
      'invalid_count',
    ),
    batch: optional(BatchLabel, null, 'invalid_batch'),
    name: optional(NodeName, null, 'invalid_name', {
      after: [
        {
          refusal: 'invalid_name',
          passes: ({ name, count = 1 }) =>
            typeof name !== 'string' || isNodeName(numberedName(name, Number(count))),
        },
      ],
    }),
    labels: optional(NodeLabels, null, 'invalid_labels'),
  },
  answer: Invite,
  refusals: ['private_key_given', 'insufficient_storage'],
});

export const listInvites = operatorList('GET /admin/invites', {
  list: { member: 'invites', isCounted: true },
  summary: 'Invites by fingerprint, never with their tokens',
  query: {
    status: choice(INVITE_STATUSES, 'invalid_invite_status', 'Only those with this status'),
    batch: text('Only those of this batch', 'invalid_batch', isBatchLabel),
    ...descriptionParameters,
    fingerprint: text('Only those whose fingerprint begins with this'),
  },
  answer: InviteList,
});

export const withdrawInvite = operatorCommand('POST /admin/invites/{fingerprint}/withdraw', {
  summary: 'Withdraw an invite that was not used',
  answer: InviteWithdrawal,
  exampleNeeds: { what: 'the fingerprint of an invite', otherwise: 'invite_not_found' },
  refusals: ['invite_not_found', 'invite_consumed'],
});

export const withdrawInviteBatch = operatorCommand('POST /admin/invites/withdraw', {
  summary: 'Withdraw the unused invites of a batch',
  body: {
    batch: required(BatchLabel, 'invalid_batch'),
    fingerprints: optional(
      Type.Array(Type.String({ pattern: '^[0-9a-f]{16}$' }), {
        maxItems: MAX_INVITES,
        uniqueItems: true,
        description: 'Only invites with one of these fingerprints',
      }),
      null,
    ),
  },
  answer: InviteBatchWithdrawal,
  exampleNeeds: { what: 'a batch of invites', otherwise: 'batch_not_found' },
  refusals: ['batch_not_found'],
});
