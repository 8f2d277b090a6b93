import { REFUSALS } from '../../base/refusal.ts';
import type { NodeClaim } from '../../protocol/contract/claims.ts';
import { type Edge, withAnswer } from '../edge.ts';
import { countedFailure } from '../limited.ts';
import type { Reply } from '../reply.ts';
import { addressBlock } from '../request-head.ts';
import type { NodeProofRule, RouteRequest } from '../route.ts';

/** A claimed key is whatever the client wrote; a real one has 44 characters. */
const MAX_KEY_LENGTH = 64;

/** The request proves possession of the `node_public_key` of its body. */
export const BODY_KEY_PROOF: NodeProofRule = {
  keyOf({ body }) {
    const { node_public_key: key } = body;
    return typeof key === 'string' ? key : null;
  },
  form: 'body or header',
};

/**
 * Runs a handler with the proof of possession of the request. Failed proofs are limited per source and
 * claimed key, so that one broken node never locks out the fleet behind its gateway. Only failures are
 * counted and refused: knowing a node's public key is not enough to lock the node out.
 */
export function withProof(
  { node, now, remoteAddr }: RouteRequest,
  edge: Edge,
  answer: (node: NodeClaim) => Reply | Promise<Reply>,
): Reply | Promise<Reply> {
  if (node === null) throw new Error('A node route was reached without a claim');
  const failureKey = () => `${addressBlock(remoteAddr)} ${node.publicKey.slice(0, MAX_KEY_LENGTH)}`;
  if (node.verdict !== 'valid') {
    // Counted before it is answered: parallel forgeries must not all pass.
    return countedFailure(edge, 'NODE_FAILURES', failureKey(), now, () => answer(node));
  }
  const reply = answer(node);
  return withAnswer(reply, (late) =>
    // A proof that verifies but was used before is a failure that only the authority can see.
    late.refusal !== null && REFUSALS[late.refusal].code === 'node_auth_failed'
      ? countedFailure(edge, 'NODE_FAILURES', failureKey(), now, () => late)
      : late,
  );
}
