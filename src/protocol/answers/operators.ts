/** Answers to operators about nodes and about operators [core-4-7] to [core-4-9], [core-4-15]. */
import Type, { type Static } from 'typebox';
import { SUCCESSION_KINDS } from '../records/authority-succession.ts';
import { Datetime } from '../records/record.ts';
import { CertificateRow } from '../rows/certificate.ts';
import { InviteRow } from '../rows/invite.ts';
import { DescriptionMembers } from '../rows/node-description.ts';
import { OperatorKeyRow, TIERS } from '../rows/operator-key.ts';
import { NextCursor } from './scalars.ts';

export const RosterNode = Type.Object({
  node_public_key: Type.String(),
  roles: Type.Array(Type.String()),
  /** The status that the node reported in its last heartbeat: any text. */
  status: Type.String(),
  last_heartbeat: Datetime,
  remote_addr: Type.String(),
  expires_at: Datetime,
  ...DescriptionMembers,
});

/** The active nodes by certificate id; the public gets only their count. */
export const NodeCount = Type.Object({
  count: Type.Integer(),
  nodes: Type.Optional(Type.Record(Type.String(), RosterNode)),
});

export const InviteToken = Type.Object({
  token_id: Type.String(),
  expires_at: Datetime,
  /** The name that the node will get, if the request has one. */
  name: DescriptionMembers.name,
});

/** `tokens` is present if a count was requested; its first element is repeated at the top level. */
export const Invite = Type.Object({
  ...InviteToken.properties,
  tokens: Type.Optional(Type.Array(InviteToken)),
});

export const InviteList = Type.Object({
  count: Type.Integer(),
  invites: Type.Array(InviteRow),
  next_cursor: NextCursor,
});

export const InviteWithdrawal = Type.Object({
  token_fingerprint: Type.String(),
  status: Type.Literal('withdrawn'),
  already_withdrawn: Type.Boolean(),
});

export const InviteBatchWithdrawal = Type.Object({
  batch: Type.String(),
  withdrawn: Type.Integer(),
  remaining: Type.Integer({
    description: 'Unused invites of the batch that are left for the next call',
  }),
});

export const DescribedNode = Type.Object({
  node_public_key: Type.String(),
  ...DescriptionMembers,
});

export const CertificateList = Type.Object({
  count: Type.Integer(),
  certificates: Type.Array(CertificateRow),
  next_cursor: NextCursor,
});

export const Revocation = Type.Object({
  crl_sequence: Type.Integer(),
  revoked_count: Type.Integer(),
  revoked_cert_ids: Type.Optional(
    Type.Array(Type.String(), {
      description:
        'All certificates that were ended, if a key was named or other certificates of the same key were ended too',
    }),
  ),
  live_certificates_of_key: Type.Optional(
    Type.Integer({ description: 'Certificates of the same key that are still live, if any' }),
  ),
});

/** The last three members are absent if the key had already been revoked. */
export const OperatorKeyRevocation = Type.Object({
  key_id: Type.String(),
  revoked: Type.Boolean(),
  already_revoked: Type.Boolean(),
  revoked_at: Type.Optional(Datetime),
  reason: Type.Optional(Type.String()),
  remaining_active_keys: Type.Optional(Type.Integer()),
});

export const OperatorKeyList = Type.Object({ operator_keys: Type.Array(OperatorKeyRow) });

export const OperatorKeyAdded = Type.Object({
  key_id: Type.String(),
  public_key: Type.String(),
  tier: Type.Enum([...TIERS]),
  added_at: Datetime,
});

export const OperatorKeyTier = Type.Object({
  key_id: Type.String(),
  tier: Type.Enum([...TIERS]),
});

/** What a step of a succession has led to; `sequence` and the three members after it are those of its statement. */
export const AuthorityKeyStep = Type.Object({
  public_key: Type.String(),
  state: Type.Enum(['absent', 'staged', 'current', 'retired'], {
    description: 'The state of this key now',
  }),
  sequence: Type.Integer(),
  kind: Type.Enum([...SUCCESSION_KINDS]),
  activates_at: Datetime,
  overlap_until: Datetime,
  key_held: Type.Boolean({ description: 'Whether this authority holds the private key' }),
});

export type RosterNode = Static<typeof RosterNode>;
export type NodeCount = Static<typeof NodeCount>;
export type InviteToken = Static<typeof InviteToken>;
export type Invite = Static<typeof Invite>;
export type InviteList = Static<typeof InviteList>;
export type InviteWithdrawal = Static<typeof InviteWithdrawal>;
export type InviteBatchWithdrawal = Static<typeof InviteBatchWithdrawal>;
export type DescribedNode = Static<typeof DescribedNode>;
export type CertificateList = Static<typeof CertificateList>;
export type Revocation = Static<typeof Revocation>;
export type OperatorKeyRevocation = Static<typeof OperatorKeyRevocation>;
export type OperatorKeyList = Static<typeof OperatorKeyList>;
export type OperatorKeyAdded = Static<typeof OperatorKeyAdded>;
export type OperatorKeyTier = Static<typeof OperatorKeyTier>;
export type AuthorityKeyStep = Static<typeof AuthorityKeyStep>;
