import { hash } from 'node:crypto';
import type { JsonObject } from '../../base/json/value.ts';
import { parseRequestTimestamp } from '../../base/timestamp.ts';
import type { RequestIdentity } from '../../protocol/contract/claims.ts';

/** What a signature over a request can cover. */
export interface SignedRequest {
  /** Upper case. */
  readonly method: string;
  /** Percent-decoded, without query. */
  readonly path: string;
  readonly query: { readonly [name: string]: readonly string[] };
  readonly body: JsonObject;
}

const DIGEST_LENGTH = 24;

/**
 * Distinguishes signed requests. A signature depends on all that it covers, but not every form of it covers
 * method and path.
 */
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

/** Judges a signed request's timestamp: its age, past or future, may be at most the tolerance. */
export function judgeTimestamp(text: string, now: number, toleranceMs: number): TimestampVerdict {
  const signedAt = parseRequestTimestamp(text);
  if (signedAt === null) return { verdict: 'invalid_timestamp', signedAt: 0 };
  if (Math.abs(now - signedAt) > toleranceMs) return { verdict: 'stale_timestamp', signedAt: 0 };
  return { verdict: 'current', signedAt };
}
