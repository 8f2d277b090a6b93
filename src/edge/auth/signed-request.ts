import { hash } from 'node:crypto';
import type { JsonObject } from '../../base/json/value.ts';
import { parseRequestTimestamp } from '../../base/timestamp.ts';
import type { RequestIdentity } from '../../protocol/contract/claims.ts';

/** The parts of a request that a signature can cover. */
export interface SignedRequest {
  /** Upper case: that of the route, which is GET for a HEAD. */
  readonly method: string;
  /** Percent-decoded, without query; as sent if it cannot be decoded. */
  readonly path: string;
  query: { readonly [name: string]: readonly string[] };
  body: JsonObject;
}

/** A request with what is known about its sender. */
export interface ReceivedRequest extends SignedRequest {
  readonly remoteAddr: string;
  /** Milliseconds since the epoch: the edge's one clock reading for this request. */
  now: number;
}

const DIGEST_LENGTH = 24;

/** Identifies a signed request. The signature alone is not enough, because not every form covers method and path. */
export function requestIdentityOf(
  { method, path }: SignedRequest,
  signature: string,
  isRepeat: boolean,
): RequestIdentity {
  const text = `${method} ${path}\n${signature}`;
  return { request: hash('sha256', text, 'base64').slice(0, DIGEST_LENGTH), isRepeat };
}

export type TimestampVerdict =
  | { readonly verdict: 'invalid_timestamp' | 'stale_timestamp'; readonly signedAt: 0 }
  | { readonly verdict: 'current'; readonly signedAt: number };

/** Checks a signed request's timestamp: it may differ from now, in either direction, by at most the tolerance. */
export function judgeTimestamp(text: string, now: number, toleranceMs: number): TimestampVerdict {
  const signedAt = parseRequestTimestamp(text);
  if (signedAt === null) return { verdict: 'invalid_timestamp', signedAt: 0 };
  if (Math.abs(now - signedAt) > toleranceMs) return { verdict: 'stale_timestamp', signedAt: 0 };
  return { verdict: 'current', signedAt };
}
