/**
 * Pages of other origins that are named in the settings: they may read every answer and send signed requests (the CORS
 * protocol of the Fetch standard). No cookies are involved, so credentials are never allowed.
 */
import { type Reply, textReply } from './reply.ts';
import type { RequestHead } from './request-head.ts';

/** What is known of the page that a browser makes the request for. */
export interface CorsRequest {
  /** Null when the origin is not named, or the request is not one of a page. */
  readonly origin: string | null;
  /** A browser asks whether the page may send what it means to. */
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

/** It says the same of every path; what a path does not take is refused when it is sent. */
export function preflightReply(): Reply {
  const reply = textReply('text/plain; charset=utf-8', '');
  return { ...reply, headerLines: `${reply.headerLines}\r\n${PREFLIGHT_LINES}` };
}

/** Lines of every answer while origins are named, so that no cache gives one origin's answer to another. */
export function corsLines({ origin }: CorsRequest): string {
  if (origin === null) return 'Vary: Origin';
  return [
    'Vary: Origin',
    `Access-Control-Allow-Origin: ${origin}`,
    'Access-Control-Expose-Headers: ETag, Retry-After, X-Mesh-Replayed, X-Mesh-Stale-Since, X-Request-Id',
  ].join('\r\n');
}
