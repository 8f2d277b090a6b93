/** ValidatorVote: a sovereign's signed yes or no to a justified decision [trust-2-10], [trust-3-4]. */
import Type, { type Static } from 'typebox';
import { formatInstant } from '../../base/timestamp.ts';
import { type Issuer, keysOf } from './issuer.ts';
import { type JustificationProof, justificationDigest } from './justification-proof.ts';
import { FreshDatetime, FreshId, nullable, recordReader, SignatureItem } from './record.ts';
import { signSingly } from './signed-record.ts';

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
