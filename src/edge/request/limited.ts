/** Replies of rate limits, and failures that have their own limits. */

import type { NodeClaim } from '../../protocol/contract/claims.ts';
import { REFUSALS } from '../../protocol/refusals.ts';
import type { RateBucket } from '../../protocol/route-description.ts';
import { type Edge, withAnswer } from '../edge.ts';
import type { LimitName } from '../metrics.ts';
import { type Reply, refusalReply } from '../reply.ts';
import { addressBlock } from './request-head.ts';
import type { Request, Route, RouteRequest } from './route.ts';

/** All but the parameters with which a reader goes through a whole list, page by page. */
const SEARCHES = /(?:^|&)(?!(?:limit|cursor)=)[^&]/;

/** Counts a request in the limit of its route; null if it is within the limit. */
export function takeLimit(
  edge: Edge,
  { rawQuery, remoteAddr, now }: Request,
  { limit, path }: Route,
): Reply | null | Promise<Reply | null> {
  if (limit === 'none' || !edge.limits.isOn(limit)) return null;
  if (limit === 'SEARCH' && !SEARCHES.test(rawQuery)) return null;
  const source = addressBlock(remoteAddr);
  // Verification endpoints have one bucket each [core-4-1].
  const key = limit === 'VERIFY' ? `${path} ${source}` : source;
  return withAnswer(edge.limits.take(limit, key, now), (seconds) =>
    seconds > 0 ? limited(edge, limit, seconds) : null,
  );
}

export function limited(edge: Edge, bucket: LimitName, retryAfterSeconds: number): Reply {
  edge.metrics.rateLimited(bucket);
  const refusal = bucket === 'UNPROVEN_BODIES' ? 'admin_auth_throttled' : 'rate_limit_exceeded';
  return refusalReply(refusal, {}, 'Retry-After', String(retryAfterSeconds));
}

/** Counts a failure and answers it, or answers 429 once the bucket of failures is full. */
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

/** A claimed key may be any text; a real one has 44 characters. */
const MAX_KEY_LENGTH = 64;

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
  // Decided by what the edge knows, so that strangers do not reach the authority with it.
  if (node.verdict === 'session_ended') {
    edge.metrics.session('ended');
    return refusalReply('session_ended');
  }
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
