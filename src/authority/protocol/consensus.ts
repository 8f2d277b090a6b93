/** Votes cast, and consensus proofs assembled, by this sovereign (wire trust rules 4.7, 5.8, 5.9). */

import type { Input, OperatorClaim } from '../../contract/claims.ts';
import { jsonText } from '../../json/write.ts';
import { assembleConsensusProof, type Ballots } from '../../records/consensus-proof.ts';
import type { JustificationProof } from '../../records/justification-proof.ts';
import { buildValidatorVote } from '../../records/validator-vote.ts';
import type { Handler } from '../engine/execute.ts';
import { accept } from '../engine/input.ts';
import { authenticateOperator } from '../enrolment/operator-keys.ts';
import { built, issuerOf } from './issuer.ts';

export interface CastVote {
  readonly operator: OperatorClaim;
  readonly input: Input<{
    readonly justification: JustificationProof;
    readonly vote: boolean;
    readonly reason: string | null;
  }>;
}

export const castVote: Handler<CastVote> = (na, unit, command) => {
  authenticateOperator(na, unit, command.operator, 'standard');
  const { justification, vote, reason } = accept(command.input);
  const ballot = buildValidatorVote(issuerOf(na, unit), justification, vote, reason);
  unit.audit('validator_vote_cast', {
    vote_id: ballot.vote_id,
    proof_id: ballot.proof_id,
    decision_id: ballot.decision_id,
    vote: ballot.vote,
  });
  return jsonText(ballot);
};

export interface AssembleConsensus {
  readonly operator: OperatorClaim;
  readonly input: Input<{
    readonly justification: JustificationProof;
    readonly ballots: Ballots;
  }>;
}

export const assembleConsensus: Handler<AssembleConsensus> = (na, unit, command) => {
  authenticateOperator(na, unit, command.operator, 'standard');
  const { justification, ballots } = accept(command.input);
  const result = assembleConsensusProof(issuerOf(na, unit), justification, ballots);
  const { proof, assessment } = built(result, 'proof_assembly_failed');
  unit.audit('consensus_proof_assembled', {
    consensus_id: proof.consensus_id,
    proof_id: proof.proof_id,
    vote_count: proof.votes.length,
    required_threshold: proof.required_threshold,
  });
  unit.whenCommitted(() => na.log('consensus_cascade_assessed', assessment));
  return jsonText(proof);
};
