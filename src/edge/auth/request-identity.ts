import { hash } from 'node:crypto';
import type { RequestIdentity } from '../../protocol/contract/claims.ts';
import type { SignedRequest } from './signed-request.ts';

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
