/**
 * Operator headers (wire rules 2.1 to 2.3). This is the edge's half of the checks: it judges headers,
 * timestamp and signature; the authority judges the key, the nonce and the tier.
 */
import type { OperatorClaim, OperatorProofVerdict } from '../contract/claims.ts';
import { verifySignature } from '../crypto/ed25519.ts';
import type { JsonObject } from '../json/value.ts';
import { canonicalJson } from '../json/write.ts';
import type { SignedRequest } from './signed-request.ts';
import { judgeTimestamp } from './timestamps.ts';

const MAX_HEADER_LENGTH = 256;

export interface OperatorHeaders {
  readonly keyId: string;
  readonly timestamp: string;
  readonly nonce: string;
  readonly signature: string;
}

export interface OperatorAuthSettings {
  /** Configured keys: key id to base64 public key. */
  readonly keys: ReadonlyMap<string, string>;
  /** This NA's public key: the audience a request must be signed for. */
  readonly audience: string;
  readonly toleranceMs: number;
  /** Whether the older payload, which binds neither path nor authority, is taken too. */
  readonly acceptV1: boolean;
}

export function judgeOperator(
  headers: OperatorHeaders,
  request: SignedRequest,
  settings: OperatorAuthSettings,
  now: number,
): Pick<OperatorClaim, 'keyId' | 'nonce' | 'verdict' | 'signatureVersion'> {
  const { keyId, nonce } = headers;
  const refused = refusedHeaders(headers, settings, now);
  if (refused !== null) return { keyId, nonce, verdict: refused, signatureVersion: null };
  const signatureVersion = versionOf(headers, request, settings);
  const verdict = signatureVersion === null ? 'invalid_signature' : 'valid';
  return { keyId, nonce, verdict, signatureVersion };
}

function refusedHeaders(
  headers: OperatorHeaders,
  { toleranceMs }: OperatorAuthSettings,
  now: number,
): OperatorProofVerdict | null {
  const values = Object.values(headers);
  if (values.some((value) => value === '')) return 'missing_headers';
  if (values.some((value) => value.length > MAX_HEADER_LENGTH)) return 'oversized_headers';
  const { verdict } = judgeTimestamp(headers.timestamp, now, toleranceMs);
  return verdict === 'current' ? null : verdict;
}

/** The version of the payload that the signature covers; null when it verifies over neither. */
function versionOf(
  headers: OperatorHeaders,
  request: SignedRequest,
  { keys, audience, acceptV1 }: OperatorAuthSettings,
): 1 | 2 | null {
  const key = keys.get(headers.keyId);
  if (key === undefined) return null;
  const covers = (text: string) => verifySignature(key, text, headers.signature);
  if (covers(operatorPayload(headers, request, audience))) return 2;
  if (!acceptV1 || !isBoundByVersion1(request)) return null;
  return covers(operatorPayloadV1(headers, request.body)) ? 1 : null;
}

/**
 * Version 1 covers the body and nothing else, so over an empty body it would cover every command that
 * needs none: a recorded GET must not publish a policy. A GET changes nothing, whichever one it is.
 */
function isBoundByVersion1({ method, body }: SignedRequest): boolean {
  return method === 'GET' || Object.keys(body).length > 0;
}

/** The text a version 2 signature covers: it binds the route, the query and this authority. */
export function operatorPayload(
  { keyId, timestamp, nonce }: OperatorHeaders,
  { method, path, query, body }: SignedRequest,
  audience: string,
): string {
  return canonicalJson({
    v: 2,
    method,
    path,
    query,
    audience,
    body,
    key_id: keyId,
    timestamp,
    nonce,
  });
}

function operatorPayloadV1({ keyId, timestamp, nonce }: OperatorHeaders, body: JsonObject): string {
  return canonicalJson({ body, key_id: keyId, timestamp, nonce });
}
