/** Answers of rate limits, and failures that are counted in limits of their own. */

import type { RateBucket } from '../protocol/route-description.ts';
import { type Edge, withAnswer } from './edge.ts';
import type { Received, StepResult } from './exchange.ts';
import { type Reply, refusalReply } from './reply.ts';
import { addressBlock } from './request-head.ts';

/** Counts a request in the limit of its route. */
export function takeLimit(edge: Edge, received: Received): StepResult {
  const { limit } = received.route;
  if (limit === 'none' || !edge.limits.isOn(limit)) return null;
  return withAnswer(edge.limits.take(limit, limitKey(received), received.request.now), (seconds) =>
    seconds > 0 ? limited(edge, limit, seconds) : null,
  );
}

/** A limit is per source; verification endpoints have one bucket each [core-4-1]. */
export function limitKey({ route: { limit, path }, exchange }: Received): string {
  const source = addressBlock(exchange.remoteAddr);
  return limit === 'VERIFY' ? `${path} ${source}` : source;
}

export function limited(edge: Edge, bucket: RateBucket, retryAfterSeconds: number): Reply {
  edge.metrics.rateLimited(bucket);
  const refusal = bucket === 'ADMIN_FAILURES' ? 'admin_auth_throttled' : 'rate_limit_exceeded';
  return refusalReply(refusal, {}, 'Retry-After', String(retryAfterSeconds));
}

/** Counts a failure and then answers it, or answers 429 once the bucket of failures is full. */
export function countedFailure<Answer extends Reply | null>(
  edge: Edge,
  bucket: RateBucket,
  key: string,
  now: number,
  answer: () => Answer | Promise<Answer>,
): Reply | Answer | Promise<Reply | Answer> {
  return withAnswer<number, Reply | Answer>(edge.limits.take(bucket, key, now), (seconds) =>
    seconds > 0 ? limited(edge, bucket, seconds) : answer(),
  );
}
