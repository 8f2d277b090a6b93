/** Consensus: vote, assemble, verify [trust-5-8], [trust-5-9], [trust-6-6]. */
import Type from 'typebox';
import { verifySignature } from '../../base/crypto/ed25519.ts';
import { isJsonObject, type JsonObject } from '../../base/json/value.ts';
import { EXAMPLE_KEY } from '../../pages/reference/example.ts';
import { ConsensusVerdict } from '../../protocol/answers/verdicts.ts';
import type { Taken } from '../../protocol/contract/calls.ts';
import { MAX_VALIDATORS, MAX_VOTES } from '../../protocol/records/bounds.ts';
import {
  ConsensusProof,
  readConsensusProof,
  verifyConsensusProof,
} from '../../protocol/records/consensus-proof.ts';
import {
  JustificationProof,
  readJustificationProof,
} from '../../protocol/records/justification-proof.ts';
import type { Fresh } from '../../protocol/records/record.ts';
import { readValidatorVote, ValidatorVote } from '../../protocol/records/validator-vote.ts';
import type { Edge } from '../edge.ts';
import type { Reply } from '../reply.ts';
import type { RouteEntry, RouteRequest } from '../route.ts';
import { recordRoute } from './record-route.ts';
import {
  areTexts,
  candidateKeys,
  demand,
  demandPresent,
  embedded,
  freshFor,
  integerOf,
  isList,
  isMissing,
  refuse,
} from './trust-members.ts';
import { Keys, optional } from './trust-schemas.ts';
import { verdictReply } from './verdict.ts';

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
    answer: ConsensusProof,
    refusals: ['missing_proof_fields', 'proof_assembly_failed'],
    command: 'assembleConsensus',
    read: proofInput,
  }),
  {
    method: 'POST',
    path: '/consensus/verify',
    access: 'public',
    limit: 'VERIFY',
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
    handle: verify,
  },
];

function voteInput(body: JsonObject, fresh: Fresh): Taken<'castVote'> {
  const { vote, reason = null } = body;
  demandPresent(body, ['justification_proof'], 'missing_vote_fields');
  demand(typeof vote === 'boolean', 'missing_vote_fields', 'invalid_vote');
  const justification = readJustificationProof(body.justification_proof, fresh);
  if (justification === null) return refuse('invalid_justification', 'invalid_justification');
  const isReason = reason === null || typeof reason === 'string';
  demand(isReason, 'vote_failed', 'invalid_reason');
  return { justification, vote, reason };
}

function proofInput(body: JsonObject, fresh: Fresh): Taken<'assembleConsensus'> {
  const { votes, validator_sovereign_ids: validators } = body;
  demandPresent(body, ['justification_proof'], 'missing_proof_fields');
  const areVotes = isList(votes) && votes.length <= MAX_VOTES;
  demand(areVotes, 'missing_proof_fields', 'invalid_votes');
  const areValidators = isList(validators) && validators.length <= MAX_VALIDATORS;
  demand(areValidators, 'missing_proof_fields', 'invalid_validator_sovereign_ids');
  const threshold = integerOf(body.required_threshold);
  demand(threshold !== null, 'missing_proof_fields', 'invalid_required_threshold');
  const read = readJustificationProof(body.justification_proof, fresh);
  const justification = embedded(read, 'missing_proof_fields', 'invalid_justification');
  const ballots = votes.map((vote) =>
    embedded(readValidatorVote(vote, fresh), 'missing_proof_fields', 'invalid_vote'),
  );
  const areIds = areTexts(validators);
  demand(areIds, 'proof_assembly_failed', 'invalid_validator_sovereign_ids');
  return { justification, ballots: { votes: ballots, requiredThreshold: threshold, validators } };
}

function verify(request: RouteRequest, edge: Edge): Reply {
  const { body, now } = request;
  demandPresent(body, ['proof'], 'missing_proof');
  const proof = readConsensusProof(body.proof, freshFor(request, edge));
  if (proof === null) return refuse('invalid_proof', 'invalid_proof');
  const assemblerKeys = candidateKeys(body.assembler_public_keys, edge, 'invalid_proof');
  const { validator_public_keys: keys } = body;
  const isMap = isJsonObject(keys) && !isMissing(keys);
  demand(isMap, 'missing_validator_public_keys', 'missing_validator_public_keys');
  const validatorKeys = new Map(Object.entries(keys));
  demand(validatorKeys.size <= MAX_VALIDATORS, 'invalid_proof', 'too_many_validators');
  const reason = verifyConsensusProof(proof, validatorKeys, assemblerKeys, now, verifySignature);
  const { consensus_id } = proof;
  const valid = reason === 'valid';
  const answer = { valid, reason, consensus_id };
  return verdictReply(edge, 'consensus_proof_verified', answer, { consensus_id, valid });
}
