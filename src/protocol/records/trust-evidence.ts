/**
 * TrustEvidence: a sovereign's signed statement of how it judged another [trust-2-1], [trust-2-2], [trust-5-5],
 * [trust-6-3]. Evidence with the verdict `block` is valid too: neither verdict nor age affects validity.
 */

import Type, { type Static } from 'typebox';
import type { VerifySignature } from '../../base/crypto/primitives.ts';
import { isJsonObject } from '../../base/json/value.ts';
import { formatInstant } from '../../base/timestamp.ts';
import { type Issuer, keysOf } from './issuer.ts';
import {
  BoundedSignatures,
  FreeForm,
  FreshDatetime,
  FreshId,
  type RecordReader,
  recordReader,
} from './record.ts';
import { isSignedByAny, signRecord } from './signed-record.ts';

export const VERDICTS = ['allow', 'warn', 'block', 'escalate'] as const;
export type Verdict = (typeof VERDICTS)[number];

const TrustSignal = Type.Object({
  code: Type.String(),
  severity: Type.String(),
  detail: Type.String({ default: '' }),
});
export type TrustSignal = Static<typeof TrustSignal>;

/** A decision about another sovereign; its trust path does not become part of the evidence. */
export const TrustDecision = Type.Object({
  source_sovereign_id: Type.String(),
  target_sovereign_id: Type.String(),
  verdict: Type.Enum([...VERDICTS]),
  reason: Type.String({ default: '' }),
  requested_roles: Type.Array(Type.String(), { default: [] }),
  trusted: Type.Boolean({ default: false }),
  hop_count: Type.Integer({ minimum: 0, default: 0 }),
  signals: Type.Array(TrustSignal, { default: [] }),
  evaluated_at: Type.String({ default: '' }),
});
export type TrustDecision = Static<typeof TrustDecision>;

export const readTrustDecision = recordReader(TrustDecision);

/** Signals of other issuers may have any members whose values are text. */
const AnySignal = Type.Refine(
  Type.Unsafe<{ readonly [name: string]: string }>({
    type: 'object',
    additionalProperties: { type: 'string' },
  }),
  isJsonObject,
);

export const TrustEvidence = Type.Object({
  evidence_id: FreshId,
  issuer_sovereign_id: Type.String(),
  source_sovereign_id: Type.String(),
  target_sovereign_id: Type.String(),
  verdict: Type.String(),
  reason: Type.String(),
  requested_roles: Type.Array(Type.String(), { default: [] }),
  trusted: Type.Boolean(),
  hop_count: Type.Integer({ minimum: 0 }),
  signals: Type.Array(AnySignal, { default: [] }),
  graph_digest: Type.String(),
  /** Kept as text: it is not one of the record's datetimes. */
  evaluated_at: Type.String(),
  issued_at: FreshDatetime,
  issued_by: Type.String(),
  metadata: FreeForm,
  signatures: BoundedSignatures,
});
export type TrustEvidence = Static<typeof TrustEvidence>;

export const readTrustEvidence: RecordReader<TrustEvidence> = recordReader(TrustEvidence);

/** Signs the decision as stated; `graphDigest` identifies the graph it is based on. */
export function buildTrustEvidence(
  issuer: Issuer,
  decision: TrustDecision,
  graphDigest: string,
): TrustEvidence {
  const evidence = {
    evidence_id: issuer.uuid(),
    issuer_sovereign_id: issuer.sovereignId,
    source_sovereign_id: decision.source_sovereign_id,
    target_sovereign_id: decision.target_sovereign_id,
    verdict: decision.verdict,
    reason: decision.reason,
    requested_roles: decision.requested_roles,
    trusted: decision.trusted,
    hop_count: decision.hop_count,
    signals: decision.signals.map(({ code, severity, detail }) => ({ code, severity, detail })),
    graph_digest: graphDigest,
    evaluated_at: decision.evaluated_at,
    issued_at: formatInstant(issuer.now),
    issued_by: issuer.keyId,
    metadata: {},
    signatures: [],
  };
  return { ...evidence, ...signRecord(evidence, keysOf(issuer)) };
}

export const EVIDENCE_REASONS = [
  'missing_signature',
  'invalid_signature',
  'graph_digest_mismatch',
  'accepted',
] as const;
export type EvidenceReason = (typeof EVIDENCE_REASONS)[number];

/** `expectedGraphDigest` is compared as text; null skips the comparison. */
export function verifyTrustEvidence(
  evidence: TrustEvidence,
  issuerKeys: readonly string[],
  expectedGraphDigest: string | null,
  verify: VerifySignature,
): EvidenceReason {
  if (evidence.signatures.length === 0) return 'missing_signature';
  if (!isSignedByAny(evidence, issuerKeys, verify)) return 'invalid_signature';
  if (expectedGraphDigest !== null && expectedGraphDigest !== evidence.graph_digest) {
    return 'graph_digest_mismatch';
  }
  return 'accepted';
}
