/**
 * Decisions: on the boundary of an agreement [trust-5-4], on trust, as evidence [trust-5-5], and of validators, by vote
 * [trust-5-8], [trust-5-9].
 */
import Type from 'typebox';
import { isJsonObject, isList, type JsonObject, type JsonValue } from '../../base/json/value.ts';
import { AgreementRecord, readAgreementRecord } from '../records/agreement.ts';
import { BoundaryDecision } from '../records/boundary-decision.ts';
import { ConsensusProof } from '../records/consensus-proof.ts';
import { MAX_VALIDATORS, MAX_VOTES, Whole } from '../records/record.ts';
import {
  readTrustDecision,
  TrustDecision,
  TrustEvidence,
  VERDICTS,
} from '../records/trust-evidence.ts';
import {
  JustificationProof,
  readJustificationProof,
  readValidatorVote,
  ValidatorVote,
} from '../records/validator-vote.ts';
import { demand, type RefusalName, refuse } from '../refusals.ts';
import { operatorCommand } from './define.ts';
import { Filled, readBy } from './members.ts';
import {
  demandPresent,
  freeFormOf,
  integerOf,
  isMissing,
  listOf,
  memberOf,
  memberOr,
  omittable,
  textOf,
  textsOf,
} from './trust-members.ts';

const PARTY = Type.String({ description: 'a party of the agreement' });

const Context = Type.Object({
  context_id: omittable(Type.String({ description: 'reappears in the decision' })),
  parent_kind: omittable(Type.String()),
  requester_sovereign_id: omittable(PARTY),
  provider_sovereign_id: omittable(PARTY),
  request_parameters: omittable(Whole),
  context_freshness_seq: omittable(Type.Integer({ minimum: 0 })),
});

export const decideBoundary = operatorCommand('POST /admin/boundary/decide', {
  created: 'always',
  summary: 'Decide whether a request stays within an agreement',
  description:
    'A denial is a signed decision too. Both parties must have signed the agreement, unless it answers an offer of this authority.',
  body: readBy(
    Type.Object({
      agreement: AgreementRecord,
      requested_capability: Filled,
      context: omittable(Context),
    }),
    ['missing_boundary_fields', 'invalid_agreement', 'boundary_eval_failed'],
    (body, fresh) => {
      demandPresent(body, ['agreement', 'requested_capability'], 'missing_boundary_fields');
      const refusal = 'missing_boundary_fields';
      return {
        agreement: memberOf(body, 'agreement', readAgreementRecord, 'invalid_agreement', fresh),
        context: readContext(memberOf(body, 'context', freeFormOf, refusal), refusal),
        requested_capability: memberOf(body, 'requested_capability', textOf, refusal),
      };
    },
  ),
  exampleNeeds: {
    what: 'an agreement that this authority signed',
    otherwise: 'boundary_eval_failed',
  },
  answer: BoundaryDecision,
});

function readContext(context: JsonObject, refusal: RefusalName) {
  const text = (name: string) => memberOr(context, name, null, textOf, refusal);
  const sequence = memberOr(context, 'context_freshness_seq', 0, integerOf, refusal);
  demand(sequence >= 0, refusal, 'invalid_context_freshness_seq');
  const context_id = text('context_id');
  // Only the types of these two are checked, because no part of a decision depends on them.
  text('parent_kind');
  const requester_sovereign_id = text('requester_sovereign_id');
  const provider_sovereign_id = text('provider_sovereign_id');
  memberOf(context, 'request_parameters', freeFormOf, refusal);
  const parties = { requester_sovereign_id, provider_sovereign_id };
  return { context_id, context_freshness_seq: sequence, ...parties };
}

export const buildEvidence = operatorCommand('POST /admin/trust-evidence', {
  created: 'always',
  summary: 'Sign a trust decision as evidence',
  description: 'The decision is signed as stated; it is not compared with the graph.',
  body: readBy(
    Type.Object({
      decision: TrustDecision,
      graph_digest: omittable(Type.String({ description: 'else that of our graph' })),
    }),
    ['missing_decision', 'invalid_decision', 'evidence_build_failed'],
    (body) => {
      const { decision: given } = body;
      const isThere = isJsonObject(given) && !isMissing(given);
      demand(isThere, 'missing_decision', 'missing_decision');
      demandForm(given);
      return {
        decision: memberOf(body, 'decision', readTrustDecision, 'evidence_build_failed'),
        graph_digest: memberOr(body, 'graph_digest', null, textOf, 'evidence_build_failed'),
      };
    },
  ),
  answer: TrustEvidence,
});

/** The members that a decision must have; the types of the others are checked when the evidence is built. */
function demandForm(decision: JsonObject): void {
  const { verdict, hop_count: hops, trusted } = decision;
  demand(
    VERDICTS.some((known) => known === verdict),
    'invalid_decision',
    'invalid_verdict',
  );
  for (const name of ['source_sovereign_id', 'target_sovereign_id']) {
    demand((decision[name] ?? null) !== null, 'invalid_decision', `missing_${name}`);
  }
  for (const name of ['signals', 'requested_roles']) {
    const list = decision[name];
    demand(list === undefined || isList(list), 'invalid_decision', `invalid_${name}`);
  }
  demand((listOf(decision.signals) ?? []).every(isSignal), 'invalid_decision', 'invalid_signals');
  const isCount = hops === undefined || integerOf(hops) !== null;
  demand(isCount, 'invalid_decision', 'invalid_hop_count');
  const isFlag = trusted === undefined || typeof trusted === 'boolean';
  demand(isFlag, 'invalid_decision', 'invalid_trusted');
}

function isSignal(value: JsonValue): boolean {
  if (!isJsonObject(value)) return false;
  return (value.code ?? null) !== null && (value.severity ?? null) !== null;
}

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
      const { vote, reason: given = null } = body;
      demandPresent(body, ['justification_proof'], 'missing_vote_fields');
      demand(typeof vote === 'boolean', 'missing_vote_fields', 'invalid_vote');
      const justification_proof =
        readJustificationProof(body.justification_proof, fresh) ??
        refuse('invalid_justification', 'invalid_justification');
      const reason = given === null ? null : memberOf(body, 'reason', textOf, 'vote_failed');
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
      const refusal = 'missing_proof_fields';
      const required_threshold = memberOf(body, 'required_threshold', integerOf, refusal);
      const justification_proof =
        readJustificationProof(body.justification_proof, fresh) ??
        refuse('missing_proof_fields', 'invalid_justification');
      const votes = given.map(
        (vote) => readValidatorVote(vote, fresh) ?? refuse('missing_proof_fields', 'invalid_vote'),
      );
      const ids = memberOf(body, 'validator_sovereign_ids', textsOf, 'proof_assembly_failed');
      return { justification_proof, votes, required_threshold, validator_sovereign_ids: ids };
    },
  ),
  // Of somebody else, because an example cannot carry our signature.
  example: { justification_proof: { issuer_sovereign_id: 'auditor' } },
  answer: ConsensusProof,
});
