/**
 * The limit on failed proofs of operators [core-4-1]: failures are counted here and never in the limit of the
 * operators. A proof that verifies passes even after its source has failed too often, so that strangers at the same
 * address cannot lock operators out.
 */
import type { Edge } from './edge.ts';
import type { Exchange, Received } from './exchange.ts';
import { countedFailure } from './limited.ts';
import type { Reply } from './reply.ts';
import { addressBlock } from './request-head.ts';
import { isLargeBody, type Sender } from './unproven-bodies.ts';

/** The largest body that is still judged after its source has failed too often: enough for all but imports. */
const LARGEST_THROTTLED_BODY = 16 * 1024;

/** Whether failed proofs of this request are counted. */
export function isThrottled({ limits }: Edge, { operatorHeaders }: Exchange): boolean {
  return operatorHeaders !== null && limits.isOn('ADMIN_FAILURES');
}

/** Seconds until a proof over a body of this size would be judged; 0 when it is judged now. */
export function secondsUntilJudged(edge: Edge, received: Received): number | Promise<number> {
  const { exchange, body, request } = received;
  if (body === 'too_large' || body.byteLength <= LARGEST_THROTTLED_BODY) return 0;
  return edge.limits.wait('ADMIN_FAILURES', failureKey(edge, exchange), request.now);
}

/** Counts a failure and then gives `next`, or 429 once there were too many. */
export function countFailure<Next extends Reply | null>(
  edge: Edge,
  { exchange, request }: Received,
  next: Next,
): Reply | Next | Promise<Reply | Next> {
  const key = failureKey(edge, exchange);
  return countedFailure(edge, 'ADMIN_FAILURES', key, request.now, () => next);
}

/** Unknown key ids share one entry; otherwise each made-up id would have a fresh allowance. */
function failureKey({ settings }: Edge, { remoteAddr, operatorHeaders }: Exchange): string {
  const { keyId = '' } = operatorHeaders ?? {};
  return `${addressBlock(remoteAddr)} ${settings.operatorAuth.keys.has(keyId) ? keyId : ''}`;
}

/** Whether the body is one of those that are read only a limited number of times before a key is proven. */
export function hasLargeBody({ exchange, body }: Received): boolean {
  return exchange.takesBody && body !== 'too_large' && isLargeBody(body);
}

/** In whose name a large body is read. */
export function senderOf(remoteAddr: string, keyId: string): Sender {
  return { source: addressBlock(remoteAddr), keyId };
}
