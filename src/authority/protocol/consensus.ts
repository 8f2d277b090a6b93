/** Votes cast, and consensus proofs assembled, by this sovereign [trust-4-7], [trust-5-8], [trust-5-9]. */
import { assembleConsensusProof } from '../../protocol/records/consensus-proof.ts';
import { buildValidatorVote } from '../../protocol/records/validator-vote.ts';
import type { Handler } from '../engine/admission.ts';
import { built, issuerOf } from '../engine/issuer.ts';

export const castVote: Handler<'castVote'> = (na, unit, { justification, vote, reason }) => {
  const ballot = buildValidatorVote(issuerOf(na, unit), justification, vote, reason);
  unit.audit('validator_vote_cast', {
    vote_id: ballot.vote_id,
    proof_id: ballot.proof_id,
    decision_id: ballot.decision_id,
    vote: ballot.vote,
  });
  return ballot;
};

export const assembleConsensus: Handler<'assembleConsensus'> = (
  na,
  unit,
  { justification, ballots },
) => {
  const result = assembleConsensusProof(issuerOf(na, unit), justification, ballots);
  const { proof, assessment } = built(result, 'proof_assembly_failed');
  unit.audit('consensus_proof_assembled', {
    consensus_id: proof.consensus_id,
    proof_id: proof.proof_id,
    vote_count: proof.votes.length,
    required_threshold: proof.required_threshold,
  });
  unit.whenCommitted(() => na.log('consensus_cascade_assessed', assessment));
  return proof;
};
