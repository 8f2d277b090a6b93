/** Who may do what: operator signatures [core-2-3] and node proofs [core-3-1], with their nonces. */
import { audiencesOf } from './authority-keys.ts';
import { also, type Moment, type Outcome, refused, type Tier } from './state.ts';

/** The greatest age of a signed request, and how far it may be ahead, in milliseconds. */
export const TOLERANCE = 300_000;

/** How long nonces are remembered, in milliseconds. */
export const NONCES_HELD = 660_000;

export interface Proof {
  /** The operator's key id or the node's public key. */
  readonly holder: string;
  /** Whether the holder's own key signed it. */
  readonly isGenuine: boolean;
  readonly signedAt: number;
  readonly nonce: string;
  /** The authority key that it was signed for; null where none is named. */
  readonly audience: string | null;
}

/**
 * Predicts an operator's request: `decide` is called only if the operator is authorized and the body is well formed.
 */
export function asOperator(
  moment: Moment,
  proof: Proof,
  tier: Tier,
  isWellFormed: boolean,
  decide: () => Outcome | readonly Outcome[],
): readonly Outcome[] {
  const { state, shown, edgeNow, mayBeForgotten, wasAccepted } = moment;
  const operator = state.operators.get(proof.holder);
  const scope = `admin:${proof.holder}`;
  if (operator === undefined || operator.isOff) return [refused('unknown_admin_key')];
  const isReplay = state.spent.has(nonceKey(scope, proof)) || wasAccepted(scope, proof.nonce);
  const isForUs = audiencesOf(shown.authority).includes(proof.audience ?? '');
  if (isStale(proof, edgeNow) || isReplay || !proof.isGenuine || !isForUs) {
    return [refused('admin_auth_failed')];
  }
  const isDenied = tier === 'privileged' && operator.tier !== 'privileged';
  const outcomes = isDenied
    ? refused('insufficient_operator_tier')
    : isWellFormed
      ? decide()
      : refused('request_validation_failed');
  // A genuine request spends its nonce even if it is refused.
  const admitted = [outcomes]
    .flat()
    .map((outcome) => also(outcome, ({ spent }) => spent.add(nonceKey(scope, proof))));
  return mayBeForgotten(proof.signedAt) ? [...admitted, refused('admin_auth_failed')] : admitted;
}

export type ProofVerdict = 'valid' | 'invalid' | 'either';

/** Returns `either` where the rules leave it open, for example because a restart may have forgotten something. */
export function judgeNodeProof(moment: Moment, scope: string, proof: Proof): ProofVerdict {
  const { state, edgeNow, now, mayBeForgotten, forgottenUntil, wasAccepted, wasTried } = moment;
  const isSpent = state.spent.has(nonceKey(scope, proof));
  if (isStale(proof, edgeNow) || isSpent || !proof.isGenuine) return 'invalid';
  if (wasAccepted(scope, proof.nonce)) {
    return moment.mayCountAgain(proof.holder, proof.signedAt) ? 'either' : 'invalid';
  }
  if (isStale(proof, now) || wasTried(proof.nonce)) return 'either';
  if (mayBeForgotten(proof.signedAt)) return 'either';
  return proof.signedAt <= forgottenUntil(proof.holder) ? 'either' : 'valid';
}

/** Returns every outcome that the verdict allows: success, refusal, or both. */
export function withProof(
  verdict: ProofVerdict,
  go: () => Outcome,
  failure = 'node_auth_failed',
): readonly Outcome[] {
  const failed = refused(failure);
  if (verdict === 'invalid') return [failed];
  return verdict === 'valid' ? [go()] : [go(), failed];
}

export function nonceKey(scope: string, { nonce }: Pick<Proof, 'nonce'>): string {
  return `${scope} ${nonce}`;
}

/** A request whose age equals the tolerance is still accepted. */
function isStale({ signedAt }: Proof, now: number): boolean {
  return Math.abs(now - signedAt) > TOLERANCE;
}
