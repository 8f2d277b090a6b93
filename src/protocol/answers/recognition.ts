/**
 * Answers about policies, attestations, treaties and feeds that are not records themselves [core-4-10] to [core-4-14].
 */
import Type, { type Static } from 'typebox';
import { PolicyManifest } from '../records/policy-manifest.ts';
import { Datetime, Natural } from '../records/record.ts';
import { AttestationRow, TreatyRow } from '../rows/recognition.ts';
import { NextCursor } from './scalars.ts';

export const PolicyVersion = Type.Object({
  policy_id: Type.String(),
  active: Type.Boolean(),
  created_at: Datetime,
  policy: PolicyManifest,
});

/** Newest first. */
export const PolicyHistory = Type.Object({
  versions: Type.Array(PolicyVersion),
  next_cursor: NextCursor,
});

export const AttestationList = Type.Object({
  count: Type.Integer(),
  attestations: Type.Array(AttestationRow),
  next_cursor: NextCursor,
});

export const AttestationRevocation = Type.Object({
  attestation_id: Type.String(),
  status: Type.Literal('revoked'),
  already_revoked: Type.Optional(Type.Boolean()),
});

export const RecognitionPolicySaved = Type.Object({
  policy_id: Type.String(),
  local_sovereign_id: Type.String(),
  active: Type.Boolean(),
});

export const TreatyList = Type.Object({
  count: Type.Integer(),
  recognition_treaties: Type.Array(TreatyRow),
  next_cursor: NextCursor,
});

export const TreatyRevocation = Type.Object({
  treaty_id: Type.String(),
  status: Type.Literal('revoked'),
});

export const TreatyEndpoint = Type.Object({
  treaty_id: Type.String(),
  endpoint: Type.Union([Type.String(), Type.Null()]),
});

/** There is only one reason, because a feed that is not accepted is refused. */
export const FeedImported = Type.Object({
  accepted: Type.Boolean(),
  reason: Type.Literal('accepted'),
  feed_id: Type.String(),
  issuer_sovereign_id: Type.String(),
  sequence: Natural,
  revoked_count: Type.Integer(),
});

export type PolicyVersion = Static<typeof PolicyVersion>;
export type PolicyHistory = Static<typeof PolicyHistory>;
export type AttestationList = Static<typeof AttestationList>;
export type AttestationRevocation = Static<typeof AttestationRevocation>;
export type RecognitionPolicySaved = Static<typeof RecognitionPolicySaved>;
export type TreatyList = Static<typeof TreatyList>;
export type TreatyRevocation = Static<typeof TreatyRevocation>;
export type FeedImported = Static<typeof FeedImported>;
