/**
 * ValidatorVote: a sovereign's signed yes or no to a justified decision [trust-2-10], [trust-3-4]; and JustificationProof:
 * the gates that the decision passed or failed, as validators vote on it [trust-2-9].
 */
import Type, { type Static } from 'typebox';
import type { Sha256, VerifySignature } from '../../base/crypto/primitives.ts';
import { formatInstant } from '../../base/timestamp.ts';
import { type Issuer, keysOf, publicKeysOf } from './issuer.ts';
import {
  Datetime,
  FreeForm,
  FreshDatetime,
  FreshId,
  nullable,
  recordReader,
  SignatureItem,
} from './record.ts';
import { isSinglySignedByAny, signSingly, singlySignedText } from './signed-record.ts';

const GateTraceEntry = Type.Object({
  gate_name: Type.String(),
  gate_type: Type.String(),
  evaluated_at: Datetime,
  inputs: FreeForm,
  result: Type.Boolean(),
  reason: Type.String(),
  metadata: FreeForm,
});

const GateTrace = Type.Object({
  trace_id: FreshId,
  decision_id: Type.String(),
  agreement_id: Type.String(),
  operator_sovereign_id: Type.String(),
  traced_at: FreshDatetime,
  entries: Type.Array(GateTraceEntry, { default: [] }),
  short_circuited_at: nullable(Type.String()),
  final_authorized: Type.Boolean(),
});

export const JustificationProof = Type.Object({
  proof_id: FreshId,
  decision_id: Type.String(),
  trace: GateTrace,
  proof_issued_at: FreshDatetime,
  issuer_sovereign_id: Type.String(),
  signature: nullable(SignatureItem),
});
export type JustificationProof = Static<typeof JustificationProof>;

export const readJustificationProof = recordReader(JustificationProof);

/** Hex SHA-256 of the signed text. */
export function justificationDigest(proof: JustificationProof, sha256: Sha256): string {
  return sha256.hex(singlySignedText(proof));
}

/** Whether the proof is in the issuer's name although the issuer did not sign it. */
export function isForgery(
  issuer: Issuer,
  proof: JustificationProof,
  verify: VerifySignature,
): boolean {
  if (proof.issuer_sovereign_id !== issuer.sovereignId) return false;
  return !isSinglySignedByAny(proof, publicKeysOf(issuer), verify);
}

export const ValidatorVote = Type.Object({
  vote_id: FreshId,
  proof_id: Type.String(),
  decision_id: Type.String(),
  validator_sovereign_id: Type.String(),
  vote: Type.Boolean(),
  reason: nullable(Type.String()),
  voted_at: FreshDatetime,
  /** Shows whether validators judged independently: equal digests indicate a cascade. */
  context_digest: nullable(Type.String()),
  signature: nullable(SignatureItem),
});
export type ValidatorVote = Static<typeof ValidatorVote>;

export const readValidatorVote = recordReader(ValidatorVote);

/** The key id of a vote is the validator's sovereign id. */
export function buildValidatorVote(
  issuer: Issuer,
  justification: JustificationProof,
  vote: boolean,
  reason: string | null,
): ValidatorVote {
  const { sha256 } = issuer;
  const digest = justificationDigest(justification, sha256);
  const ballot = {
    vote_id: issuer.uuid(),
    proof_id: justification.proof_id,
    decision_id: justification.decision_id,
    validator_sovereign_id: issuer.sovereignId,
    vote,
    reason,
    voted_at: formatInstant(issuer.now),
    context_digest: sha256.hex(`${digest}:${issuer.uuid()}`),
  };
  return signSingly(ballot, keysOf(issuer), issuer.sovereignId);
}
