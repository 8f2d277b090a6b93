/**
 * How much the approving votes look like copies of each other [trust-3-5]: the share that
 * repeats one context digest, and how close in time the votes were cast.
 */
import { instantOf } from './record.ts';
import type { ValidatorVote } from './validator-vote.ts';

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
  return Math.min(1, Math.max(0, 1 - deviation / DELIBERATION_SECONDS));
}
