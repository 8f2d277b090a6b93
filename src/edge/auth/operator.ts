/**
 * Operator headers [core-2-1] to [core-2-3]. The edge checks the headers, timestamp and signature; the authority checks
 * the key, nonce and tier.
 */

import { verifySignature } from '../../base/crypto/ed25519.ts';
import { canonicalJson } from '../../base/json/write.ts';
import type { OperatorProofVerdict } from '../../protocol/contract/claims.ts';
import type { KnownAuthorityKeys } from './known-keys.ts';
import { judgeTimestamp, type SignedRequest } from './signed-request.ts';

const MAX_HEADER_LENGTH = 256;
/** Base64 of 64 bytes. */
const SIGNATURE_LENGTH = 88;

export interface OperatorHeaders {
  readonly keyId: string;
  readonly timestamp: string;
  readonly nonce: string;
  readonly signature: string;
}

export interface OperatorAuthSettings {
  /** Key id to base64 public key; the map follows the keys that the authority publishes. */
  readonly keys: ReadonlyMap<string, string>;
  /** A request is signed for one of the audiences. */
  readonly authorityKeys: Pick<KnownAuthorityKeys, 'audiences'>;
  readonly toleranceMs: number;
  /** Whether version 1 of the payload, which binds neither path nor authority, is also accepted. */
  readonly acceptV1: boolean;
}

export interface JudgedHeaders {
  readonly verdict: OperatorProofVerdict;
  /** 0 unless the timestamp is current. */
  readonly signedAt: number;
}

/** The verdict on the headers alone; if `valid`, the signature must still be checked. */
export function judgeOperatorHeaders(
  headers: OperatorHeaders,
  { keys, toleranceMs }: OperatorAuthSettings,
  now: number,
): JudgedHeaders {
  const values = Object.values(headers);
  if (values.some((value) => value === '')) return { verdict: 'missing_headers', signedAt: 0 };
  if (values.some((value) => value.length > MAX_HEADER_LENGTH)) {
    return { verdict: 'oversized_headers', signedAt: 0 };
  }
  const timestamp = judgeTimestamp(headers.timestamp, now, toleranceMs);
  if (timestamp.verdict !== 'current') return { verdict: timestamp.verdict, signedAt: 0 };
  const { signedAt } = timestamp;
  const isPossible = keys.has(headers.keyId) && headers.signature.length === SIGNATURE_LENGTH;
  return { verdict: isPossible ? 'valid' : 'invalid_signature', signedAt };
}

export interface JudgedSignature {
  readonly verdict: 'valid' | 'invalid_signature' | 'v1_unbound';
  /** The payload version that the valid signature covers; null without a valid signature. */
  readonly version: 1 | 2 | null;
}

const INVALID: JudgedSignature = { verdict: 'invalid_signature', version: null };

export function judgeSignature(
  headers: OperatorHeaders,
  request: SignedRequest,
  { keys, authorityKeys, acceptV1 }: OperatorAuthSettings,
): JudgedSignature {
  const key = keys.get(headers.keyId);
  if (key === undefined) return INVALID;
  const covers = (text: string) => verifySignature(key, text, headers.signature);
  const body = canonicalJson(request.body);
  const { audiences } = authorityKeys;
  if (audiences.some((audience) => covers(operatorPayload(headers, request, body, audience)))) {
    return { verdict: 'valid', version: 2 };
  }
  if (!acceptV1 || !covers(operatorPayloadV1(headers, body))) return INVALID;
  return isBoundByVersion1(request)
    ? { verdict: 'valid', version: 1 }
    : { verdict: 'v1_unbound', version: null };
}

/**
 * Version 1 covers only the body, so over an empty body it would cover every command that needs none: a recorded GET
 * must not publish a policy. A GET never changes anything.
 */
function isBoundByVersion1({ method, body }: SignedRequest): boolean {
  return method === 'GET' || Object.keys(body).length > 0;
}

/**
 * The text that a version 2 signature covers, which binds the route, the query and this authority. Its members are in
 * canonical order, so that the canonical text of a long body is built only once.
 */
export function operatorPayload(
  { keyId, timestamp, nonce }: OperatorHeaders,
  { method, path, query }: SignedRequest,
  body: string,
  audience: string,
): string {
  const rest = canonicalJson({ key_id: keyId, method, nonce, path, query, timestamp, v: 2 });
  return `{"audience":${canonicalJson(audience)},"body":${body},${rest.slice(1)}`;
}

function operatorPayloadV1({ keyId, timestamp, nonce }: OperatorHeaders, body: string): string {
  return `{"body":${body},${canonicalJson({ key_id: keyId, nonce, timestamp }).slice(1)}`;
}
