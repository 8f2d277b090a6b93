/**
 * What the authority adds to the edge's verdict on a node's proof: whether its nonce was used before
 * [core-3-1-4], [core-3-1-6], and what spending it means.
 */

import type { RefusalName } from '../../base/refusal.ts';
import type { NodeCallName } from '../../protocol/contract/calls.ts';
import type { NodeClaim, NodeProofVerdict } from '../../protocol/contract/claims.ts';
import type { UnitOfWork } from '../subjects/unit-of-work.ts';
import type { Authority } from './authority.ts';
import { auditRefusal } from './refusal-audit.ts';
import { assertAfterRestore } from './restored-recently.ts';

export interface NodeProofRule {
  /** The scope within which nonces of one key must not repeat. */
  readonly scope: 'join' | 'node';
  /** Whether nonces are checked against the in-memory window of the key. */
  readonly window: boolean;
  /** Whether nonces are always durable and so outlive the window. */
  readonly durable: boolean;
  /** True when the proof is optional and judged before anything else; otherwise the machine judges it. */
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

/** The nonce is judged after the timestamp and before the signature. */
export function judgeNonce(na: Authority, node: NodeClaim, rule: NodeProofRule): NodeProofVerdict {
  const { verdict, publicKey, nonce, signedAt } = node;
  if (verdict !== 'valid' && verdict !== 'invalid_signature') return verdict;
  assertAfterRestore(na, verdict === 'valid', signedAt);
  if (rule.window) {
    const found = na.windows.check(publicKey, nonce, signedAt);
    if (found !== 'fresh') return found;
    if (!rule.durable && na.earlierRequests.mayBeLost(signedAt)) return 'stale_timestamp';
  }
  const mayBeSpent = rule.durable || na.nonces.isInDoubt(signedAt);
  if (!mayBeSpent) return verdict;
  if (na.nonces.isForgotten(signedAt)) return 'stale_timestamp';
  return na.nonces.isSpent(scopeOf(node, rule), nonce) ? 'nonce_replay' : verdict;
}

/** A proof, with the certificate that the request concerns, if any. */
export interface ProvenRequest {
  readonly node: NodeClaim;
  readonly certId?: string;
}

/** Spends the nonce of a genuine request. */
export function spendNonce(
  na: Authority,
  unit: UnitOfWork,
  request: ProvenRequest,
  rule: NodeProofRule,
): void {
  const { node } = request;
  if (rule.window) claimNonce(na, unit, request);
  if (rule.durable || !na.unstoredTimes.covers(node.signedAt)) {
    const spent = na.nonces.spend(scopeOf(node, rule), node.nonce, node.signedAt);
    unit.spend(spent, node.sending);
  }
}

/** Refusals that follow the proof: the request was genuine, so its nonce is spent. */
const AFTER_PROOF: ReadonlySet<RefusalName> = new Set([
  'certificate_not_yet_valid',
  'certificate_expired',
  'certificate_superseded',
  'request_validation_failed',
  'renewal_role_change_forbidden',
  'too_many_live_certificates',
]);

/** Records what a refused request leaves behind: an audit entry for a failed proof, or a spent nonce. */
export function settleRefusal(
  na: Authority,
  unit: UnitOfWork,
  request: ProvenRequest,
  rule: NodeProofRule,
  proof: NodeProofVerdict,
  refusal: RefusalName,
): void {
  const { node } = request;
  if (refusal === 'node_auth_failed') {
    auditRefusal(na, unit, 'node_auth_failed', {
      scope: scopeOf(node, rule),
      reason: proof,
      remote_addr: node.remoteAddr,
    });
  } else if (proof === 'valid' && AFTER_PROOF.has(refusal)) {
    spendNonce(na, unit, request, rule);
  }
}

/** The window comes first: it begins at what the node signed before this request. */
function claimNonce(na: Authority, unit: UnitOfWork, { node, certId }: ProvenRequest): void {
  na.contactWriter.accepted(node.signedAt, unit.at);
  na.windows.claim(node.publicKey, node.nonce, node.signedAt, unit.at);
  if (certId !== undefined) na.liveness.noteSigned(certId, node.signedAt);
}

export function scopeOf({ publicKey }: NodeClaim, { scope }: NodeProofRule): string {
  return `${scope}:${publicKey}`;
}
