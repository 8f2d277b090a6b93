import { judgeNode } from '../auth/node.ts';
import type { NodeClaim } from '../authority/commands.ts';
import type { Edge } from '../http/edge.ts';
import { rateLimitReply } from '../http/pipeline.ts';
import type { RateBucket } from '../http/rate-limit.ts';
import type { Reply } from '../http/reply.ts';
import type { RouteRequest } from '../http/route.ts';

/** A claimed key is whatever the client wrote; a real one has 44 characters. */
const MAX_KEY_LENGTH = 64;

/** Answers a request that must prove possession of `publicKey`, with the proof as it was judged. */
export function withProof(
  request: RouteRequest,
  edge: Edge,
  publicKey: string,
  answer: (node: NodeClaim) => Reply | Promise<Reply>,
): Reply | Promise<Reply> {
  const { nodeProof, now } = request;
  return limitingFailures(
    request,
    edge,
    publicKey,
    () => judgeNode(publicKey, nodeProof, request, edge.settings.nodeAuth, now),
    answer,
  );
}

/**
 * Judges a proof of possession and answers with it. Failed proofs are limited per address and claimed
 * key, before any signature is looked at: one broken node never locks out the fleet behind its gateway.
 */
function limitingFailures(
  { remoteAddr, now }: RouteRequest,
  edge: Edge,
  publicKey: string,
  judge: () => NodeClaim,
  answer: (node: NodeClaim) => Reply | Promise<Reply>,
): Reply | Promise<Reply> {
  const key = `${remoteAddr} ${publicKey.slice(0, MAX_KEY_LENGTH)}`;
  const limiter = edge.limits.NODE_FAILURES;
  const retryAfter = limiter.retryAfter(key, now);
  if (retryAfter > 0) return limited(edge, 'NODE_FAILURES', retryAfter);
  const node = judge();
  const failed = node.verdict !== 'valid';
  // Counted when it is seen: parallel forgeries must not all pass the check above.
  if (failed) limiter.count(key, now);
  const reply = answer(node);
  if (failed) return reply;
  if (!(reply instanceof Promise)) return countReplay(edge, key, now, reply);
  return reply.then((late) => countReplay(edge, key, now, late));
}

/** A proof that verifies but was used before is a failure that only the authority can see. */
function countReplay(edge: Edge, key: string, now: number, reply: Reply): Reply {
  if (reply.refusal === 'node_auth_failed') edge.limits.NODE_FAILURES.count(key, now);
  return reply;
}

export function limited(edge: Edge, bucket: RateBucket, retryAfter: number): Reply {
  edge.metrics.rateLimited(bucket);
  return rateLimitReply(retryAfter);
}
