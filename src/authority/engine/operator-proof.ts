/** Operator authentication [service-operator-authentication], [core-2-3]. */
import type { OperatorKeyRefusal } from '../../../machines/operator-key.ts';
import type { Refused } from '../../../machines/refused.ts';
import type { OperatorClaim, OperatorProofVerdict, Tier } from '../../protocol/contract/claims.ts';
import { Refusal } from '../../protocol/refusals.ts';
import type { Authority } from '../authority.ts';
import type { ReplayRule } from '../replay/replay.ts';
import { refusalIn } from '../subjects/kinds.ts';
import type { UnitOfWork } from '../subjects/unit-of-work.ts';
import { type Repeated, repeatedAnswer } from './execute.ts';
import { auditRefusal } from './refusal-audit.ts';

const REPLAY_RULE: ReplayRule = { scope: 'admin', window: false, durable: true };

/**
 * Admits or refuses an operator, checking in the order of [core-2-3]. A genuine request spends its nonce even if it
 * is then refused because of its tier or its body; a request with a failed signature does not. For a repeated
 * request, returns the first answer.
 */
export function authenticateOperator(
  na: Authority,
  unit: UnitOfWork,
  claim: OperatorClaim,
  requiredTier: Tier,
): Repeated | null {
  const repeated =
    claim.verdict === 'valid' ? repeatedAnswer(na, unit, REPLAY_RULE, claim.keyId, claim) : null;
  // For a repeated request, only the key is checked again: a key that was revoked in the meantime gets no answer.
  const proof = repeated === null ? proofOf(na, claim) : 'valid';
  const refused = refusalIn(
    unit.send('operator-key', claim.keyId, { type: 'authenticate', proof, requiredTier }),
  );
  if (refused === null || refused.refusal === 'insufficient_operator_tier') {
    unit.actAs(claim.keyId);
    if (repeated !== null) return repeated;
    na.replay.spend(unit, REPLAY_RULE, claim.keyId, claim);
  }
  if (refused !== null) refuseOperator(na, unit, claim, requiredTier, refused);
  if (claim.signatureVersion === 1) {
    na.log('operator_signature_v1', { key_id: claim.keyId, scope: claim.scope });
  }
  return null;
}

/** The nonce is checked before the signature ([core-2-3-6] before [core-2-3-7]). */
function proofOf(na: Authority, claim: OperatorClaim): OperatorProofVerdict {
  const { verdict, keyId } = claim;
  const isJudged = ['valid', 'invalid_signature', 'v1_unbound'].includes(verdict);
  if (!isJudged) return verdict;
  const found = na.replay.check(REPLAY_RULE, keyId, claim, verdict === 'valid');
  return found === 'fresh' ? verdict : found;
}

function refuseOperator(
  na: Authority,
  unit: UnitOfWork,
  claim: OperatorClaim,
  requiredTier: Tier,
  { refusal, reason }: Refused<OperatorKeyRefusal>,
): never {
  const { keyId, scope, remoteAddr } = claim;
  const about = { key_id: keyId.slice(0, 256), scope, remote_addr: remoteAddr };
  if (refusal === 'insufficient_operator_tier') {
    unit.audit('admin_authz_denied', {
      ...about,
      holder_tier: na.subjects.current('operator-key', keyId)?.context.tier ?? 'none',
      required_tier: requiredTier,
      reason: refusal,
    });
  } else {
    const replayed = reason === 'nonce_replay' ? { nonce: claim.nonce } : {};
    auditRefusal(na, unit, 'admin_auth_failed', {
      ...about,
      reason: reason ?? refusal,
      ...replayed,
    });
  }
  throw new Refusal(refusal);
}
