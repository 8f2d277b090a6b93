/** Consensus: vote, assemble, verify [trust-5-8], [trust-5-9], [trust-6-6]. */
import Type from 'typebox';
import { areTexts, isList, type JsonObject } from '../../base/json/value.ts';
import { demand, refuse } from '../../base/refusal.ts';
import { EXAMPLE_KEY, exampleOf } from '../../pages/reference/example.ts';
import { ConsensusVerdict } from '../../protocol/answers/verdicts.ts';
import type { CallInput } from '../../protocol/contract/calls.ts';
import { MAX_VALIDATORS, MAX_VOTES } from '../../protocol/records/bounds.ts';
import { ConsensusProof } from '../../protocol/records/consensus-proof.ts';
import {
  JustificationProof,
  readJustificationProof,
} from '../../protocol/records/justification-proof.ts';
import type { Fresh } from '../../protocol/records/record.ts';
import { readValidatorVote, ValidatorVote } from '../../protocol/records/validator-vote.ts';
import { judgeConsensus } from '../../protocol/verification.ts';
import type { RouteEntry } from '../route.ts';
import { demandPresent, integerOf, Keys, optional, recordRoute } from './trust-requests.ts';
import { logging, verificationRoute } from './verification-route.ts';

/** Of somebody else, because an example cannot carry our signature. */
const EXAMPLE_JUSTIFICATION = {
  ...(exampleOf(JustificationProof as unknown as JsonObject) as JsonObject),
  issuer_sovereign_id: 'auditor',
};

export const consensusRoutes: readonly RouteEntry[] = [
  recordRoute({
    path: '/admin/consensus/vote',
    summary: 'Vote on a justified decision as this sovereign',
    body: Type.Object({
      justification_proof: JustificationProof,
      vote: Type.Boolean(),
      reason: optional(Type.String()),
    }),
    answer: ValidatorVote,
    refusals: ['missing_vote_fields', 'invalid_justification', 'vote_failed'],
    command: 'castVote',
    read: voteInput,
  }),
  recordRoute({
    path: '/admin/consensus/proof',
    summary: 'Assemble votes into a consensus proof',
    description:
      'Votes are carried as given; their signatures are judged when the proof is verified.',
    body: Type.Object({
      justification_proof: JustificationProof,
      votes: Type.Array(ValidatorVote, { maxItems: MAX_VOTES }),
      required_threshold: Type.Integer({ minimum: 1 }),
      validator_sovereign_ids: Type.Array(Type.String(), { maxItems: MAX_VALIDATORS }),
    }),
    example: { justification_proof: EXAMPLE_JUSTIFICATION },
    answer: ConsensusProof,
    refusals: ['missing_proof_fields', 'proof_assembly_failed'],
    command: 'assembleConsensus',
    read: proofInput,
  }),
  verificationRoute({
    path: '/consensus/verify',
    summary: 'Verify a consensus proof',
    description:
      'Every counted vote must verify under the key given for its validator; each validator counts ' +
      'once; without assembler keys only proofs of this authority are accepted.',
    body: Type.Object({
      proof: ConsensusProof,
      validator_public_keys: Type.Record(Type.String(), Type.String(), {
        minProperties: 1,
        maxProperties: MAX_VALIDATORS,
      }),
      assembler_public_keys: Keys,
    }),
    example: { validator_public_keys: { beta: EXAMPLE_KEY } },
    answer: ConsensusVerdict,
    refusals: ['missing_proof', 'invalid_proof', 'missing_validator_public_keys'],
    event: 'consensus_proof_verified',
    judge(body, by) {
      demandPresent(body, ['proof'], 'missing_proof');
      return logging(judgeConsensus(body, by), 'consensus_id', 'valid');
    },
  }),
];

function voteInput(body: JsonObject, fresh: Fresh): CallInput<'castVote'> {
  const { vote, reason = null } = body;
  demandPresent(body, ['justification_proof'], 'missing_vote_fields');
  demand(typeof vote === 'boolean', 'missing_vote_fields', 'invalid_vote');
  const justification =
    readJustificationProof(body.justification_proof, fresh) ??
    refuse('invalid_justification', 'invalid_justification');
  const isReason = reason === null || typeof reason === 'string';
  demand(isReason, 'vote_failed', 'invalid_reason');
  return { justification, vote, reason };
}

function proofInput(body: JsonObject, fresh: Fresh): CallInput<'assembleConsensus'> {
  const { votes, validator_sovereign_ids: validators } = body;
  demandPresent(body, ['justification_proof'], 'missing_proof_fields');
  const areVotes = isList(votes) && votes.length <= MAX_VOTES;
  demand(areVotes, 'missing_proof_fields', 'invalid_votes');
  const areValidators = isList(validators) && validators.length <= MAX_VALIDATORS;
  demand(areValidators, 'missing_proof_fields', 'invalid_validator_sovereign_ids');
  const threshold = integerOf(body.required_threshold);
  demand(threshold !== null, 'missing_proof_fields', 'invalid_required_threshold');
  const read = readJustificationProof(body.justification_proof, fresh);
  const justification = read ?? refuse('missing_proof_fields', 'invalid_justification');
  const ballots = votes.map(
    (vote) => readValidatorVote(vote, fresh) ?? refuse('missing_proof_fields', 'invalid_vote'),
  );
  const areIds = areTexts(validators);
  demand(areIds, 'proof_assembly_failed', 'invalid_validator_sovereign_ids');
  return { justification, ballots: { votes: ballots, requiredThreshold: threshold, validators } };
}
