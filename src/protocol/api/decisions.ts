/**
 * Decisions: on the boundary of an agreement [trust-5-4], on trust, as evidence [trust-5-5], and of validators, by vote
 * [trust-5-8], [trust-5-9].
 */
import Type from 'typebox';
import {
  areTexts,
  isJsonObject,
  isList,
  type JsonObject,
  type JsonValue,
} from '../../base/json/value.ts';
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
import { demand, refuse } from '../refusals.ts';
import { operatorCommand } from './define.ts';
import { Filled, readBy } from './members.ts';
import { demandPresent, freeFormOf, integerOf, isMissing, omittable } from './trust-members.ts';

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
      const agreement =
        readAgreementRecord(body.agreement, fresh) ??
        refuse('invalid_agreement', 'invalid_agreement');
      const context = isMissing(body.context) ? {} : body.context;
      demand(isJsonObject(context), 'missing_boundary_fields', 'invalid_context');
      const known = readContext(context);
      const { requested_capability } = body;
      const isText = typeof requested_capability === 'string';
      demand(isText, 'missing_boundary_fields', 'invalid_requested_capability');
      return { agreement, requested_capability, context: known };
    },
  ),
  exampleNeeds: {
    what: 'an agreement that this authority signed',
    otherwise: 'boundary_eval_failed',
  },
  answer: BoundaryDecision,
});

function readContext(context: JsonObject) {
  const context_freshness_seq = contextMember(context, 'context_freshness_seq', 0, integerOf);
  demand(context_freshness_seq >= 0, 'missing_boundary_fields', 'invalid_context_freshness_seq');
  const context_id = contextMember(context, 'context_id', null, textOf);
  // Only the types of these two are checked, because no part of a decision depends on them.
  contextMember(context, 'parent_kind', null, textOf);
  const requester_sovereign_id = contextMember(context, 'requester_sovereign_id', null, textOf);
  const provider_sovereign_id = contextMember(context, 'provider_sovereign_id', null, textOf);
  contextMember(context, 'request_parameters', null, freeFormOf);
  return { context_id, context_freshness_seq, requester_sovereign_id, provider_sovereign_id };
}

/** A member of the context; the fallback if it is empty. Refuses a member of the wrong type. */
function contextMember<T, F>(
  context: JsonObject,
  name: string,
  fallback: F,
  read: (value: JsonValue | undefined) => T | null,
): T | F {
  if (isMissing(context[name])) return fallback;
  return read(context[name]) ?? refuse('missing_boundary_fields', `invalid_${name}`);
}

function textOf(value: JsonValue | undefined): string | null {
  return typeof value === 'string' ? value : null;
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
    ({ decision: given, graph_digest: digest }) => {
      const isThere = isJsonObject(given) && !isMissing(given);
      demand(isThere, 'missing_decision', 'missing_decision');
      demandForm(given);
      const decision =
        readTrustDecision(given) ?? refuse('evidence_build_failed', 'invalid_decision');
      const graph_digest = isMissing(digest) ? null : digest;
      const isText = graph_digest === null || typeof graph_digest === 'string';
      demand(isText, 'evidence_build_failed', 'invalid_graph_digest');
      return { decision, graph_digest };
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
  demand(listOf(decision.signals).every(isSignal), 'invalid_decision', 'invalid_signals');
  const isCount = hops === undefined || integerOf(hops) !== null;
  demand(isCount, 'invalid_decision', 'invalid_hop_count');
  const isFlag = trusted === undefined || typeof trusted === 'boolean';
  demand(isFlag, 'invalid_decision', 'invalid_trusted');
}

function listOf(value: JsonValue | undefined): readonly JsonValue[] {
  return isList(value) ? value : [];
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
