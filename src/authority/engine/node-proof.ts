/**
 * Completes the edge's verdict on a node's proof: checks whether the nonce was used before [core-3-1-4], [core-3-1-6],
 * and spends it. A heartbeat of a session has no nonce: its instant must be later than before [core-3-4].
 */

import type { CertificateRefusal } from '../../../machines/certificate.ts';
import type { InviteRefusal } from '../../../machines/invite.ts';
import type { Writable } from '../../base/json/write.ts';
import type { NodeCallName } from '../../protocol/contract/calls.ts';
import type { NodeClaim, NodeProofVerdict } from '../../protocol/contract/claims.ts';
import { Refusal, type RefusalName } from '../../protocol/refusals.ts';
import type { Authority } from '../authority.ts';
import { type ReplayRule, scopeOf } from '../replay/replay.ts';
import type { UnitOfWork } from '../subjects/unit-of-work.ts';
import { type Repeated, repeatedAnswer } from './execute.ts';
import { auditRefusal } from './refusal-audit.ts';

export interface NodeProofRule extends ReplayRule {
  /** True if the proof is optional and checked before anything else; otherwise the state machine checks it. */
  readonly first: boolean;
}

const ON_AGENT_ROUTES = { scope: 'node', window: true, durable: true, first: true } as const;

export const NODE_PROOFS: Readonly<Record<NodeCallName, NodeProofRule>> = {
  join: { scope: 'join', window: false, durable: true, first: false },
  heartbeat: { scope: 'node', window: true, durable: false, first: false },
  renew: { scope: 'node', window: true, durable: true, first: false },
  registerAgent: ON_AGENT_ROUTES,
  removeAgent: ON_AGENT_ROUTES,
};

/** A proof, and the certificate that the request concerns, if any. */
export interface ProvenRequest {
  readonly node: NodeClaim;
  readonly cert_id?: string;
}

/** Passed as a plain function, because a closure would allocate one more object per heartbeat. */
type ProvenHandler = (
  na: Authority,
  unit: UnitOfWork,
  request: ProvenRequest,
  proof: NodeProofVerdict,
) => Writable;

/**
 * Runs the handler with the verdict on the node's proof, unless the request was answered before. A genuine request
 * spends its nonce.
 */
export function withNodeProof(
  na: Authority,
  unit: UnitOfWork,
  request: ProvenRequest,
  rule: NodeProofRule,
  handler: ProvenHandler,
): Writable | Repeated {
  const { node } = request;
  const repeated =
    node.verdict === 'valid' && hasNonce(node)
      ? repeatedAnswer(na, unit, rule, node.publicKey, node)
      : null;
  if (repeated !== null) return repeated;
  const proof = judgeNonce(na, request, rule);
  try {
    if (rule.first) {
      if (proof !== 'valid') throw new Refusal('node_auth_failed');
      spendNonce(na, unit, request, rule);
      return handler(na, unit, request, proof);
    }
    const answer = handler(na, unit, request, proof);
    spendNonce(na, unit, request, rule);
    return answer;
  } catch (cause) {
    if (!(cause instanceof Refusal)) throw cause;
    settleRefusal(na, unit, request, rule, proof, cause.refusal);
    throw cause.refusal === 'node_auth_failed' ? failedProof(proof) : cause;
  }
}

/** Names the check that failed [core-3-1]; all of these refusals have the same code. */
function failedProof(proof: NodeProofVerdict): Refusal {
  if (proof === 'session_ended') return new Refusal(proof);
  return new Refusal(proof === 'valid' ? 'node_auth_failed' : `node_${proof}`);
}

/** The nonce is checked after the timestamp and before the signature. */
function judgeNonce(na: Authority, request: ProvenRequest, rule: NodeProofRule): NodeProofVerdict {
  const { node, cert_id: certId = '' } = request;
  const { verdict, publicKey } = node;
  if (!hasNonce(node)) {
    const isNew = na.replay.isNewInstant(rule, request, na.liveness.newestSignedAt(certId));
    return isNew ? verdict : 'session_ended';
  }
  if (verdict !== 'valid' && verdict !== 'invalid_signature') return verdict;
  const found = na.replay.check(rule, publicKey, node, verdict === 'valid');
  return found === 'fresh' ? verdict : found;
}

/** Only a heartbeat of a session has none. */
function hasNonce(node: NodeClaim): node is NodeClaim & { readonly nonce: string } {
  return node.nonce !== null;
}

function spendNonce(
  na: Authority,
  unit: UnitOfWork,
  request: ProvenRequest,
  rule: NodeProofRule,
): void {
  const { node, cert_id: certId } = request;
  if (hasNonce(node)) na.replay.spend(unit, rule, node.publicKey, node);
  else na.replay.spendInstant(unit, rule, request);
  if (!rule.window) return;
  na.contactWriter.accepted(node.signedAt, unit.at);
  // Must come last: until now, the window started at the newest time the node signed before this request.
  if (certId !== undefined) na.liveness.noteSigned(certId, node.signedAt);
}

type NodeRefusal =
  | Exclude<CertificateRefusal | InviteRefusal, 'malformed_roles'>
  | 'request_validation_failed';

/** True for refusals that are decided after the proof passed: the request was genuine, so its nonce is spent. */
const IS_AFTER_PROOF: Readonly<Partial<Record<RefusalName, boolean>>> = {
  invalid_invite_token: false,
  invite_not_found: false,
  invite_consumed: false,
  node_key_compromised: false,
  unknown_certificate: false,
  certificate_not_found: false,
  certificate_key_mismatch: false,
  certificate_revoked: false,
  node_auth_failed: false,
  certificate_not_yet_valid: true,
  certificate_expired: true,
  certificate_superseded: true,
  request_validation_failed: true,
  renewal_role_change_forbidden: true,
  too_many_live_certificates: true,
} satisfies Record<NodeRefusal, boolean>;

/** Records the effects of a refused request: an audit entry for a failed proof, or a spent nonce. */
function settleRefusal(
  na: Authority,
  unit: UnitOfWork,
  request: ProvenRequest,
  rule: NodeProofRule,
  proof: NodeProofVerdict,
  refusal: RefusalName,
): void {
  const { node } = request;
  if (proof === 'session_ended') return;
  if (refusal === 'node_auth_failed') {
    auditRefusal(na, unit, 'node_auth_failed', {
      scope: scopeOf(rule, node.publicKey),
      reason: proof,
      remote_addr: node.remoteAddr,
    });
  } else if (proof === 'valid' && IS_AFTER_PROOF[refusal] === true) {
    spendNonce(na, unit, request, rule);
  }
}
