/**
 * CORS for pages of the configured origins, which may read every answer and send signed requests. No cookies are
 * involved, so credentials are never allowed.
 */
import { type Reply, textReply } from '../reply.ts';
import type { RequestHead } from './request-head.ts';

/** The page for which a browser makes the request. */
export interface CorsRequest {
  /** Null if the origin is not configured, or the request does not come from a page. */
  readonly origin: string | null;
  /** Whether this is a preflight request. */
  readonly isPreflight: boolean;
}

export function corsRequest(origins: ReadonlySet<string>, head: RequestHead): CorsRequest {
  const origin = head.header('origin');
  const isNamed = origins.has(origin);
  const isPreflight =
    isNamed && head.method === 'OPTIONS' && head.header('access-control-request-method') !== '';
  return { origin: isNamed ? origin : null, isPreflight };
}

const REQUEST_HEADERS = [
  'Content-Type',
  'X-Request-Id',
  'X-Mesh-Node-Proof',
  'X-Mesh-Session',
  'X-Mesh-Retry',
  'X-Admin-Key-Id',
  'X-Admin-Timestamp',
  'X-Admin-Nonce',
  'X-Admin-Signature',
].join(', ');

const PREFLIGHT_LINES = [
  'Access-Control-Allow-Methods: GET, POST, DELETE',
  `Access-Control-Allow-Headers: ${REQUEST_HEADERS}`,
  'Access-Control-Max-Age: 600',
].join('\r\n');

/** The reply is the same for all paths; unsupported methods are refused when they are actually sent. */
export function preflightReply(): Reply {
  const reply = textReply('text/plain; charset=utf-8', '');
  return { ...reply, headerLines: `${reply.headerLines}\r\n${PREFLIGHT_LINES}` };
}

/**
 * Header lines of every answer if origins are configured, so that caches do not give one origin's answer to another.
 */
export function corsLines({ origin }: CorsRequest): string {
  if (origin === null) return 'Vary: Origin';
  return [
    'Vary: Origin',
    `Access-Control-Allow-Origin: ${origin}`,
    'Access-Control-Expose-Headers: ETag, Retry-After, X-Mesh-Replayed, X-Mesh-Stale-Since, X-Request-Id',
  ].join('\r\n');
}
