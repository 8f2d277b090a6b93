/** Who may do what: operator signatures [core-2-3] and node proofs [core-3-1], with their nonces. */
import { audiencesOf } from './authority-keys.ts';
import { also, type Moment, type Outcome, refused, type Tier } from './state.ts';

/** Signed requests may be this old, or ahead, in milliseconds. */
export const TOLERANCE = 300_000;

/** Nonces are held for this long, in milliseconds. */
export const NONCES_HELD = 660_000;

export interface Proof {
  /** The operator's key id or the node's public key. */
  readonly holder: string;
  /** Whether the holder's own key signed it. */
  readonly isGenuine: boolean;
  readonly signedAt: number;
  readonly nonce: string;
  /** The key of the authority that it was signed for; null where it is not named. */
  readonly audience: string | null;
}

/** An operator's request: `decide` is asked once the operator was admitted and the body is well formed. */
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
  // A genuine request spends its nonce, whatever becomes of it.
  const admitted = [outcomes]
    .flat()
    .map((outcome) => also(outcome, ({ spent }) => spent.add(nonceKey(scope, proof))));
  return mayBeForgotten(proof.signedAt) ? [...admitted, refused('admin_auth_failed')] : admitted;
}

export type ProofVerdict = 'valid' | 'invalid' | 'either';

/** `either` is where the rules leave it open, such as what a restart may have forgotten. */
export function judgeNodeProof(moment: Moment, scope: string, proof: Proof): ProofVerdict {
  const { state, edgeNow, now, mayBeForgotten, forgottenUntil, wasAccepted, wasTried } = moment;
  const isReplay = state.spent.has(nonceKey(scope, proof)) || wasAccepted(scope, proof.nonce);
  if (isStale(proof, edgeNow) || isReplay || !proof.isGenuine) return 'invalid';
  if (isStale(proof, now) || wasTried(proof.nonce)) return 'either';
  if (mayBeForgotten(proof.signedAt)) return 'either';
  return proof.signedAt <= forgottenUntil(proof.holder) ? 'either' : 'valid';
}

/** All that a proof allows: the request goes on, or is refused, or one of both. */
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

/** An age of exactly the tolerance passes. */
function isStale({ signedAt }: Proof, now: number): boolean {
  return Math.abs(now - signedAt) > TOLERANCE;
}
