import { judgeNode } from '../auth/node.ts';
import type { NodeClaim } from '../contract/claims.ts';
import { type Edge, withAnswer } from '../http/edge.ts';
import { limited } from '../http/pipeline.ts';
import type { Reply } from '../http/reply.ts';
import type { RouteRequest } from '../http/route.ts';

/** A claimed key is whatever the client wrote; a real one has 44 characters. */
const MAX_KEY_LENGTH = 64;

/**
 * Judges the proof of possession of `publicKey` and answers with it. Failed proofs are limited per
 * address and claimed key, before any signature is looked at: one broken node never locks out the fleet
 * behind its gateway.
 */
export function withProof(
  request: RouteRequest,
  edge: Edge,
  publicKey: string,
  answer: (node: NodeClaim) => Reply | Promise<Reply>,
): Reply | Promise<Reply> {
  const { now, remoteAddr } = request;
  const key = `${remoteAddr} ${publicKey.slice(0, MAX_KEY_LENGTH)}`;
  const wait = edge.limits.wait('NODE_FAILURES', key, now);
  if (wait === 0) return judged(request, edge, publicKey, key, answer);
  return withAnswer(wait, (seconds) =>
    seconds > 0
      ? limited(edge, 'NODE_FAILURES', seconds)
      : judged(request, edge, publicKey, key, answer),
  );
}

function judged(
  request: RouteRequest,
  edge: Edge,
  publicKey: string,
  key: string,
  answer: (node: NodeClaim) => Reply | Promise<Reply>,
): Reply | Promise<Reply> {
  const { nodeProof, now } = request;
  const node = judgeNode(publicKey, nodeProof, request, edge.settings.nodeAuth, now);
  if (node.verdict !== 'valid') return failing(edge, key, now, () => answer(node));
  const reply = answer(node);
  return reply instanceof Promise
    ? reply.then((late) => countReplay(edge, key, now, late))
    : countReplay(edge, key, now, reply);
}

/** Counted before it is answered: parallel forgeries must not all pass. */
function failing(
  edge: Edge,
  key: string,
  now: number,
  answer: () => Reply | Promise<Reply>,
): Reply | Promise<Reply> {
  return withAnswer(edge.limits.take('NODE_FAILURES', key, now), (seconds) =>
    seconds > 0 ? limited(edge, 'NODE_FAILURES', seconds) : answer(),
  );
}

/** A proof that verifies but was used before is a failure that only the authority can see. */
function countReplay(edge: Edge, key: string, now: number, reply: Reply): Reply | Promise<Reply> {
  if (reply.refusal !== 'node_auth_failed') return reply;
  return withAnswer(edge.limits.take('NODE_FAILURES', key, now), () => reply);
}
