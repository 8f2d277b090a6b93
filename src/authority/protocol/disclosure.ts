/** Capability commitments and one-time nullifiers [trust-4-5], [trust-5-6], [trust-5-7]. */
import { SHA256, sha256Hex } from '../../base/crypto/digest.ts';
import { verifySignature } from '../../base/crypto/ed25519.ts';
import {
  buildCommitment,
  buildNullifier,
  membershipProofDigest,
  NULLIFIER_NONCE_BYTES,
  revealsItsLeaf,
} from '../../protocol/records/capability-disclosure.ts';
import { instantOf } from '../../protocol/records/record.ts';
import type { Handler } from '../engine/admission.ts';
import { built, issuerOf, refuseFor } from '../engine/issuer.ts';
import { refusalIn } from '../engine/refusals.ts';

export const commitCapabilities: Handler<'commitCapabilities'> = (
  na,
  unit,
  { agreement, capabilities },
) => {
  const { commitWithinAgreement } = na.settings;
  const commitment = built(
    buildCommitment(
      issuerOf(na, unit),
      agreement,
      capabilities,
      commitWithinAgreement,
      verifySignature,
    ),
    'commit_failed',
  );
  const { commitment_id, agreement_id, capability_count } = commitment;
  unit.audit('capability_commitment_created', { commitment_id, agreement_id, capability_count });
  return commitment;
};

/** Proof ids are free text, so the digest of the id is the key of the subject. */
export const nullifyProof: Handler<'nullifyProof'> = (na, unit, proof) => {
  const { proof_id, commitment_id } = proof;
  const nonce = na.runtime.randomBytes(NULLIFIER_NONCE_BYTES).toString('hex');
  const record = buildNullifier(issuerOf(na, unit), proof, nonce);
  const emitted = unit.send('capability-nullifier', sha256Hex(proof_id), {
    type: 'issue',
    leafMatches: revealsItsLeaf(proof, SHA256),
    nullifier: {
      proofDigest: membershipProofDigest(proof, SHA256),
      commitmentId: commitment_id,
      nullifierId: record.nullifier_id,
      issuedAt: unit.at,
      expiresAt: instantOf(record.expires_at),
    },
  });
  const refused = refusalIn<'nullifier_failed'>(emitted);
  if (refused !== null) refuseFor(refused.refusal, refused.reason ?? refused.refusal);
  unit.audit('capability_nullifier_issued', {
    nullifier_id: record.nullifier_id,
    proof_id,
    commitment_id,
  });
  return record;
};
