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
): Pick<OperatorClaim, 'keyId' | 'nonce' | 'verdict'> {
  const { keyId, nonce } = headers;
  return { keyId, nonce, verdict: verdictOf(headers, request, settings, now) };
}

function verdictOf(
  headers: OperatorHeaders,
  request: SignedRequest,
  settings: OperatorAuthSettings,
  now: number,
): OperatorProofVerdict {
  const values = Object.values(headers);
  if (values.some((value) => value === '')) return 'missing_headers';
  if (values.some((value) => value.length > MAX_HEADER_LENGTH)) return 'oversized_headers';
  const timestamp = judgeTimestamp(headers.timestamp, now, settings.toleranceMs);
  if (timestamp.verdict !== 'current') return timestamp.verdict;
  return isSigned(headers, request, settings) ? 'valid' : 'invalid_signature';
}

function isSigned(
  headers: OperatorHeaders,
  request: SignedRequest,
  { keys, audience, acceptV1 }: OperatorAuthSettings,
): boolean {
  const key = keys.get(headers.keyId);
  if (key === undefined) return false;
  const texts = [operatorPayload(headers, request, audience)];
  if (acceptV1) texts.push(operatorPayloadV1(headers, request.body));
  return texts.some((text) => verifySignature(key, text, headers.signature));
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
