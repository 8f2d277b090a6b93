/** Consensus: vote, assemble [trust-5-8], [trust-5-9]. */
import Type from 'typebox';
import { areTexts, isList } from '../../base/json/value.ts';
import { MAX_VALIDATORS, MAX_VOTES } from '../records/bounds.ts';
import { ConsensusProof } from '../records/consensus-proof.ts';
import { JustificationProof, readJustificationProof } from '../records/justification-proof.ts';
import { readValidatorVote, ValidatorVote } from '../records/validator-vote.ts';
import { demand, refuse } from '../refusals.ts';
import { operatorCommand } from './define.ts';
import { readBy } from './members.ts';
import { demandPresent, integerOf, omittable } from './trust-members.ts';

export const castVote = operatorCommand('POST /admin/consensus/vote', {
  created: 'always',
  summary: 'Vote on a justified decision as this sovereign',
  body: readBy(
    Type.Object({
      justification_proof: JustificationProof,
      vote: Type.Boolean(),
      reason: omittable(Type.String()),
    }),
    ['missing_vote_fields', 'invalid_justification', 'vote_failed'],
    (body, fresh) => {
      const { vote, reason = null } = body;
      demandPresent(body, ['justification_proof'], 'missing_vote_fields');
      demand(typeof vote === 'boolean', 'missing_vote_fields', 'invalid_vote');
      const justification_proof =
        readJustificationProof(body.justification_proof, fresh) ??
        refuse('invalid_justification', 'invalid_justification');
      const isReason = reason === null || typeof reason === 'string';
      demand(isReason, 'vote_failed', 'invalid_reason');
      return { justification_proof, vote, reason };
    },
  ),
  answer: ValidatorVote,
});

export const assembleConsensus = operatorCommand('POST /admin/consensus/proof', {
  created: 'always',
  summary: 'Assemble votes into a consensus proof',
  description:
    'Votes are carried as given; their signatures are judged when the proof is verified.',
  body: readBy(
    Type.Object({
      justification_proof: JustificationProof,
      votes: Type.Array(ValidatorVote, { maxItems: MAX_VOTES }),
      required_threshold: Type.Integer({ minimum: 1 }),
      validator_sovereign_ids: Type.Array(Type.String(), { maxItems: MAX_VALIDATORS }),
    }),
    ['missing_proof_fields', 'proof_assembly_failed'],
    (body, fresh) => {
      const { votes: given, validator_sovereign_ids } = body;
      demandPresent(body, ['justification_proof'], 'missing_proof_fields');
      const areVotes = isList(given) && given.length <= MAX_VOTES;
      demand(areVotes, 'missing_proof_fields', 'invalid_votes');
      const areValidators =
        isList(validator_sovereign_ids) && validator_sovereign_ids.length <= MAX_VALIDATORS;
      demand(areValidators, 'missing_proof_fields', 'invalid_validator_sovereign_ids');
      const required_threshold = integerOf(body.required_threshold);
      demand(required_threshold !== null, 'missing_proof_fields', 'invalid_required_threshold');
      const justification_proof =
        readJustificationProof(body.justification_proof, fresh) ??
        refuse('missing_proof_fields', 'invalid_justification');
      const votes = given.map(
        (vote) => readValidatorVote(vote, fresh) ?? refuse('missing_proof_fields', 'invalid_vote'),
      );
      const areIds = areTexts(validator_sovereign_ids);
      demand(areIds, 'proof_assembly_failed', 'invalid_validator_sovereign_ids');
      return { justification_proof, votes, required_threshold, validator_sovereign_ids };
    },
  ),
  // Of somebody else, because an example cannot carry our signature.
  example: { justification_proof: { issuer_sovereign_id: 'auditor' } },
  answer: ConsensusProof,
});
