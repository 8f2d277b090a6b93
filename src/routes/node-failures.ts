import type { Edge } from '../http/edge.ts';
import { rateLimitReply } from '../http/pipeline.ts';
import type { RateBucket, RateLimiter } from '../http/rate-limit.ts';
import type { Reply } from '../http/reply.ts';
import type { RouteRequest } from '../http/route.ts';

/**
 * Runs `answer`, which judges a proof of possession. Failed proofs are limited per address and claimed
 * key, before any signature is looked at: one broken node never locks out the fleet behind its gateway.
 */
export function limitingFailures(
  { remoteAddr, now }: RouteRequest,
  edge: Edge,
  publicKey: string,
  answer: () => Reply | Promise<Reply>,
): Reply | Promise<Reply> {
  const key = `${remoteAddr} ${publicKey}`;
  const limiter = edge.limits.NODE_FAILURES;
  const retryAfter = limiter.retryAfter(key, now);
  if (retryAfter > 0) return limited(edge, 'NODE_FAILURES', retryAfter);
  const reply = answer();
  if (reply instanceof Promise) return reply.then((late) => counted(limiter, key, now, late));
  return counted(limiter, key, now, reply);
}

function counted(limiter: RateLimiter, key: string, now: number, reply: Reply): Reply {
  if (reply.refusal === 'node_auth_failed') limiter.count(key, now);
  return reply;
}

export function limited(edge: Edge, bucket: RateBucket, retryAfter: number): Reply {
  edge.metrics.rateLimited(bucket);
  return rateLimitReply(retryAfter);
}
