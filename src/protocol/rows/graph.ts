/** The recognition graph and the documents derived from it [core-6-2] to [core-6-4]. */
import Type, { type Static } from 'typebox';
import { RecognitionTreaty, TreatyScope } from '../records/recognition.ts';
import { Datetime, Natural } from '../records/record.ts';
import { ExpiryRisk, LifecycleState, TreatyStatus } from './recognition.ts';

export const SovereignRow = Type.Object({ sovereign_id: Type.String() });

/** A treaty as an edge from its issuer to its subject. */
export const EdgeRow = Type.Object({
  from: Type.String(),
  to: Type.String(),
  treaty_id: Type.String(),
  status: TreatyStatus,
  lifecycle_state: LifecycleState,
  expiry_risk: ExpiryRisk,
  valid_from: Datetime,
  expires_at: Datetime,
  followed_key: Type.Optional(
    Type.String({
      description:
        'Current key of the subject, only if the treaty followed it to another authority key',
    }),
  ),
});

const Reason = Type.Union([Type.String(), Type.Null()]);

/** A revoked treaty. */
export const RevokedTreaty = Type.Object({
  type: Type.Literal('recognition_treaty'),
  id: Type.String(),
  lifecycle_state: LifecycleState,
  reason: Reason,
  revoked_at: Datetime,
});

/** An attestation that an imported feed revokes, and who accepts attestations of its issuer. */
export const BlastRadiusRow = Type.Object({
  type: Type.Literal('membership_attestation'),
  id: Type.String(),
  issuer_sovereign_id: Type.String(),
  affected_accepting_sovereigns: Type.Array(Type.String()),
  feed_id: Type.String(),
  sequence: Natural,
  reason: Reason,
  revoked_at: Datetime,
});

export const ImportedRevocation = Type.Omit(BlastRadiusRow, ['affected_accepting_sovereigns']);

/** The schema has the members that both kinds share. */
export const RevokedMaterial = Type.Unsafe<RevokedTreaty | ImportedRevocation>(
  Type.Object(
    {
      type: Type.Enum(['recognition_treaty', 'membership_attestation']),
      id: Type.String(),
      reason: Reason,
      revoked_at: Datetime,
    },
    { additionalProperties: true },
  ),
);

export const ConnectomeSummary = Type.Object({
  sovereign_count: Type.Integer(),
  recognition_edge_count: Type.Integer(),
  active_edge_count: Type.Integer(),
  revoked_edge_count: Type.Integer(),
  revoked_trust_material_count: Type.Integer(),
  imported_revocation_count: Type.Integer(),
});

export const RecognitionGraph = Type.Object({
  sovereigns: Type.Array(SovereignRow),
  recognition_edges: Type.Array(EdgeRow),
  active_treaties: Type.Array(RecognitionTreaty),
  revoked_trust_material: Type.Array(RevokedMaterial),
});

export const Connectome = Type.Object({
  summary: ConnectomeSummary,
  ...RecognitionGraph.properties,
  revocation_blast_radius: Type.Array(BlastRadiusRow),
});

export const TrustPath = Type.Object({
  from: Type.String(),
  to: Type.String(),
  trusted: Type.Boolean(),
  reason: Type.Enum(['active_treaty_path', 'direct_treaty_revoked', 'no_active_treaty_path']),
  path: Type.Array(EdgeRow),
  hop_count: Type.Integer(),
});

/** A treaty with its id, issuer and subject. */
export const TreatyEnds = Type.Object({
  treaty_id: Type.String(),
  from: Type.String(),
  to: Type.String(),
});

/** In the order of the checks. */
export const FailedTest = Type.Enum([
  'left_out',
  'not_issued',
  'revoked',
  'replaced',
  'expired',
  'not_reached',
  'leads_elsewhere',
  'longer',
  'later',
]);

const DatetimeOrNull = Type.Union([Datetime, Type.Null()]);

/** A treaty that was considered but did not count. */
export const Candidate = Type.Object({
  ...TreatyEnds.properties,
  failed_test: FailedTest,
  hops: Type.Union([Type.Integer(), Type.Null()]),
  valid_from: Datetime,
  expires_at: Datetime,
  revoked_at: DatetimeOrNull,
  revocation_reason: Reason,
});

export const TrustCut = Type.Object({
  state: Type.Enum(['found', 'none', 'indeterminate']),
  size: Type.Integer(),
  treaties: Type.Array(TreatyEnds),
});

/** Why a sovereign is trusted or not [core-6-3-1]. */
export const TrustExplanation = Type.Object({
  trusted_until: DatetimeOrNull,
  path_until: DatetimeOrNull,
  terms: Type.Array(
    Type.Object({ treaty_id: Type.String(), scope: Type.Union([TreatyScope, Type.Null()]) }),
  ),
  candidates: Type.Array(Candidate),
  candidate_count: Type.Integer(),
  more_candidates: Type.Integer(),
  cut: TrustCut,
});

const CONSIDERED = {
  ...TrustPath.properties,
  reason: Type.Enum([
    'active_treaty_path',
    'direct_treaty_revoked',
    'no_active_treaty_path',
    'indeterminate',
  ]),
} as const;

const ABOUT = {
  as_of: DatetimeOrNull,
  evaluated_at: Datetime,
  known_from: DatetimeOrNull,
  without: Type.Array(Type.String()),
  /** Hex SHA-256 over the canonical text of the recognition graph. */
  graph_digest: Type.String(),
} as const;

const ExplanationOrNull = Type.Union([TrustExplanation, Type.Null()]);

/** The answer to a question about trust that names more than two sovereigns [core-6-3-1]. */
export const ConsideredTrust = Type.Object({
  ...CONSIDERED,
  ...ABOUT,
  explanation: Type.Optional(ExplanationOrNull),
});

export const ExplainedTrust = Type.Object({
  ...CONSIDERED,
  ...ABOUT,
  explanation: ExplanationOrNull,
});

/** Any answer: only the path, or the answer to an extended question. */
export const TrustAnswer = Type.Object({
  ...CONSIDERED,
  ...Type.Partial(Type.Object(ABOUT)).properties,
  explanation: Type.Optional(ExplanationOrNull),
});

export const Atlas = Type.Object({
  sovereigns: Type.Array(SovereignRow),
  recognition_edges: Type.Array(EdgeRow),
  active_treaty_count: Type.Integer(),
  revoked_trust_material_count: Type.Integer(),
  /** Hex SHA-256 over the canonical text of the recognition graph. */
  graph_digest: Type.String(),
});

export type SovereignRow = Static<typeof SovereignRow>;
export type EdgeRow = Static<typeof EdgeRow>;
export type RevokedTreaty = Static<typeof RevokedTreaty>;
export type ImportedRevocation = Static<typeof ImportedRevocation>;
export type RevokedMaterial = Static<typeof RevokedMaterial>;
export type BlastRadiusRow = Static<typeof BlastRadiusRow>;
export type ConnectomeSummary = Static<typeof ConnectomeSummary>;
export type RecognitionGraph = Static<typeof RecognitionGraph>;
export type Connectome = Static<typeof Connectome>;
export type TrustPath = Static<typeof TrustPath>;
export type TreatyEnds = Static<typeof TreatyEnds>;
export type FailedTest = Static<typeof FailedTest>;
export type Candidate = Static<typeof Candidate>;
export type TrustCut = Static<typeof TrustCut>;
export type TrustExplanation = Static<typeof TrustExplanation>;
export type ConsideredTrust = Static<typeof ConsideredTrust>;
export type ExplainedTrust = Static<typeof ExplainedTrust>;
export type TrustAnswer = Static<typeof TrustAnswer>;
export type Atlas = Static<typeof Atlas>;
