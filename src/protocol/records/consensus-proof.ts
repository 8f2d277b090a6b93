/**
 * ConsensusProof: enough named validators independently approved a decision
 * [service-consensus-verification-rules], [trust-2-11], [trust-4-6], [trust-4-7].
 */
import Type, { type Static } from 'typebox';
import type { VerifySignature } from '../../base/crypto/primitives.ts';
import { JsonFloat, type JsonObject, type JsonValue } from '../../base/json/value.ts';
import { canonicalJson } from '../../base/json/write.ts';
import { formatInstant } from '../../base/timestamp.ts';
import { type BuildFailure, type Issuer, keysOf } from './issuer.ts';
import {
  Datetime,
  FreshDatetime,
  FreshId,
  instantOf,
  MAX_VALIDATORS,
  MAX_VOTES,
  nullable,
  recordReader,
  SignatureItem,
} from './record.ts';
import {
  isSinglySignedByAny,
  signSingly,
  singlySignedText,
  withinBudget,
} from './signed-record.ts';
import { type JustificationProof, ValidatorVote } from './validator-vote.ts';

/** How long a proof is valid, in milliseconds. */
const PROOF_VALIDITY = 300_000;

export const ConsensusProof = Type.Object({
  consensus_id: FreshId,
  proof_id: Type.String(),
  decision_id: Type.String(),
  required_threshold: Type.Integer(),
  validator_sovereign_ids: Type.Array(Type.String(), { maxItems: MAX_VALIDATORS }),
  /** All submitted votes, including those that do not count. */
  votes: Type.Array(ValidatorVote, { default: [], maxItems: MAX_VOTES }),
  reached_at: FreshDatetime,
  expires_at: Datetime,
  cascade_assessment_digest: nullable(Type.String()),
  signature: nullable(SignatureItem),
});
export type ConsensusProof = Static<typeof ConsensusProof>;

export const readConsensusProof = recordReader(ConsensusProof);

export interface Ballots {
  readonly votes: readonly ValidatorVote[];
  readonly required_threshold: number;
  readonly validator_sovereign_ids: readonly string[];
}

export interface Assembled {
  readonly proof: ConsensusProof;
  /** The content behind the digest in the proof. It is logged, because nobody can recompute the digest. */
  readonly assessment: JsonObject;
}

export type AssemblyProblem = 'threshold_out_of_range' | 'threshold_not_met' | 'cascade_detected';

/** Does not verify the signatures of votes, because no keys are given. */
export function assembleConsensusProof(
  issuer: Issuer,
  justification: JustificationProof,
  { votes, required_threshold, validator_sovereign_ids: validators }: Ballots,
): Assembled | BuildFailure<AssemblyProblem> {
  const named = new Set(validators);
  if (required_threshold < 1 || required_threshold > named.size) {
    return { unbuilt: 'threshold_out_of_range' };
  }
  const { proof_id, decision_id } = justification;
  const supporting = firstOfEachValidator(
    votes.filter(
      (vote) => isCounted(vote, named) && vote.signature !== null && concerns(vote, justification),
    ),
  );
  if (supporting.length < required_threshold) return { unbuilt: 'threshold_not_met' };
  const cascade = scoreCascade(supporting);
  if (cascade.blocked) return { unbuilt: 'cascade_detected' };
  const consensusId = issuer.uuid();
  const assessment = assess(issuer, consensusId, cascade);
  const proof = {
    consensus_id: consensusId,
    proof_id,
    decision_id,
    required_threshold,
    validator_sovereign_ids: [...validators],
    votes: [...votes],
    reached_at: formatInstant(issuer.now),
    expires_at: formatInstant(issuer.now + PROOF_VALIDITY),
    cascade_assessment_digest: issuer.sha256.hex(canonicalJson(assessment)),
  };
  return { proof: signSingly(proof, keysOf(issuer)), assessment };
}

function assess(issuer: Issuer, consensusId: string, cascade: Cascade): JsonObject {
  return {
    assessment_id: issuer.uuid(),
    consensus_id: consensusId,
    cascade_score: new JsonFloat(cascade.score),
    context_divergence_score: new JsonFloat(cascade.contextDivergence),
    temporal_clustering_score: new JsonFloat(cascade.temporalClustering),
    modal_context_digest: cascade.modalDigest,
    approve_vote_count: cascade.approvals,
    unique_context_count: cascade.uniqueDigests,
    assessed_at: formatInstant(issuer.now),
    blocked: cascade.blocked,
    threshold_used: new JsonFloat(CASCADE_THRESHOLD),
  };
}

export const CONSENSUS_REASONS = [
  'missing_signature',
  'invalid_assembler_signature',
  'proof_id_mismatch',
  'invalid_vote_signature',
  'unknown_validator_key',
  'vote_not_in_validator_set',
  'threshold_not_met',
  'missing_context_digest',
  'cascade_detected',
  'expired',
  'valid',
] as const;
export type ConsensusReason = (typeof CONSENSUS_REASONS)[number];

/** The caller's mapping of validators to keys. */
export type ValidatorKeys = ReadonlyMap<string, JsonValue>;

export function verifyConsensusProof(
  proof: ConsensusProof,
  validatorKeys: ValidatorKeys,
  assemblerKeys: readonly string[],
  now: number,
  verify: VerifySignature,
): ConsensusReason {
  if (proof.signature === null) return 'missing_signature';
  const check = withinBudget(verify);
  if (!isSinglySignedByAny(proof, assemblerKeys, check)) return 'invalid_assembler_signature';
  const named = new Set(proof.validator_sovereign_ids);
  const counted = proof.votes.filter((vote) => isCounted(vote, named));
  if (!counted.every((vote) => concerns(vote, proof))) return 'proof_id_mismatch';
  const unproven = firstVoteProblem(proof.votes, named, validatorKeys, check);
  if (unproven !== null) return unproven;
  if (proof.votes.some((vote) => vote.vote && !isNamed(vote, named))) {
    return 'vote_not_in_validator_set';
  }
  const supporting = firstOfEachValidator(counted);
  const { required_threshold: required } = proof;
  if (required < 1 || supporting.length < required) return 'threshold_not_met';
  if (counted.some(({ context_digest }) => context_digest === null)) {
    return 'missing_context_digest';
  }
  if (scoreCascade(supporting).blocked) return 'cascade_detected';
  return instantOf(proof.expires_at) <= now ? 'expired' : 'valid';
}

/**
 * The first problem of a vote that does not verify under its validator's key; votes of outsiders are checked only if
 * signed.
 */
function firstVoteProblem(
  votes: readonly ValidatorVote[],
  named: ReadonlySet<string>,
  keys: ValidatorKeys,
  verify: VerifySignature,
): 'invalid_vote_signature' | 'unknown_validator_key' | null {
  for (const vote of votes) {
    const problem = voteProblem(vote, named, keys, verify);
    if (problem !== null) return problem;
  }
  return null;
}

function voteProblem(
  vote: ValidatorVote,
  named: ReadonlySet<string>,
  keys: ValidatorKeys,
  verify: VerifySignature,
): 'invalid_vote_signature' | 'unknown_validator_key' | null {
  if (vote.signature === null) return isNamed(vote, named) ? 'invalid_vote_signature' : null;
  const key = keys.get(vote.validator_sovereign_id);
  if (key === undefined) return isCounted(vote, named) ? 'unknown_validator_key' : null;
  const { sig } = vote.signature;
  const isGenuine = typeof key === 'string' && verify(key, singlySignedText(vote), sig);
  return isGenuine ? null : 'invalid_vote_signature';
}

function isNamed({ validator_sovereign_id }: ValidatorVote, named: ReadonlySet<string>): boolean {
  return named.has(validator_sovereign_id);
}

function isCounted(vote: ValidatorVote, named: ReadonlySet<string>): boolean {
  return vote.vote && isNamed(vote, named);
}

function concerns(
  vote: ValidatorVote,
  { proof_id, decision_id }: Pick<ConsensusProof, 'proof_id' | 'decision_id'>,
): boolean {
  return vote.proof_id === proof_id && vote.decision_id === decision_id;
}

/**
 * How much the approving votes look like copies of each other [trust-3-5]: the share that
 * repeats one context digest, and how close in time the votes were cast.
 */

const DIGEST_WEIGHT = 0.7;
const TIME_WEIGHT = 0.3;
/** Votes with this much spread in time, in seconds, count as independent in time. */
const DELIBERATION_SECONDS = 30;
/** A score above this blocks the consensus. */
export const CASCADE_THRESHOLD = 0.4;

export interface Cascade {
  readonly score: number;
  readonly contextDivergence: number;
  readonly temporalClustering: number;
  /** The most frequent digest; null if no vote has one. */
  readonly modalDigest: string | null;
  readonly uniqueDigests: number;
  readonly approvals: number;
  readonly blocked: boolean;
}

type Ballot = Pick<
  ValidatorVote,
  'vote' | 'validator_sovereign_id' | 'voted_at' | 'context_digest'
>;

/** Scores the approving votes. */
export function scoreCascade(votes: readonly Ballot[]): Cascade {
  const approving = votes.filter(({ vote }) => vote);
  const counts = digestCounts(approving);
  const [modalDigest, repeats] = mostFrequent(counts);
  const contextDivergence = divergence(approving.length, repeats);
  const temporalClustering = clustering(approving);
  const score = DIGEST_WEIGHT * contextDivergence + TIME_WEIGHT * temporalClustering;
  return {
    score,
    contextDivergence,
    temporalClustering,
    modalDigest,
    uniqueDigests: counts.size,
    approvals: approving.length,
    blocked: score > CASCADE_THRESHOLD,
  };
}

/** The first vote of each validator, so that a validator cannot dilute the score by voting often with fresh digests. */
export function firstOfEachValidator<Vote extends Ballot>(votes: readonly Vote[]): Vote[] {
  const first = new Map<string, Vote>();
  for (const vote of votes) {
    const { validator_sovereign_id: validator, voted_at } = vote;
    const earlier = first.get(validator);
    if (earlier === undefined || instantOf(voted_at) < instantOf(earlier.voted_at)) {
      first.set(validator, vote);
    }
  }
  return [...first.values()];
}

function digestCounts(votes: readonly Ballot[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { context_digest: digest } of votes) {
    if (digest !== null) counts.set(digest, (counts.get(digest) ?? 0) + 1);
  }
  return counts;
}

function mostFrequent(counts: ReadonlyMap<string, number>): [string | null, number] {
  let modal: [string | null, number] = [null, 0];
  for (const [digest, count] of counts) if (count > modal[1]) modal = [digest, count];
  return modal;
}

/** Votes without any digest count as fully dependent. */
function divergence(approvals: number, repeats: number): number {
  if (approvals === 0) return 0;
  if (repeats === 0) return 1;
  return approvals === 1 ? 0 : (repeats - 1) / (approvals - 1);
}

function clustering(votes: readonly Ballot[]): number {
  const [first] = votes;
  if (first === undefined || votes.length < 2) return 0;
  const start = instantOf(first.voted_at);
  const seconds = votes.map(({ voted_at }) => (instantOf(voted_at) - start) / 1000);
  const mean = seconds.reduce((sum, at) => sum + at, 0) / seconds.length;
  const squares = seconds.reduce((sum, at) => sum + (at - mean) ** 2, 0);
  const deviation = Math.sqrt(squares / (seconds.length - 1));
  return Math.max(0, 1 - deviation / DELIBERATION_SECONDS);
}
