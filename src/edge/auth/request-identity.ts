import { hash } from 'node:crypto';
import type { JsonObject } from '../../base/json/value.ts';
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
