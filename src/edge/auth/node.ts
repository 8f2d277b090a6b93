/**
 * A node's proof of possession [core-3-1], [core-3-3]: a signed body, or the header `X-Mesh-Node-Proof`, which takes
 * precedence if present. The authority checks the nonce and the certificate.
 */

import { sha256Hex } from '../../base/crypto/digest.ts';
import { verifySignature } from '../../base/crypto/ed25519.ts';
import type { JsonObject } from '../../base/json/value.ts';
import { canonicalJson } from '../../base/json/write.ts';
import type { NodeClaim, NodeProofVerdict } from '../../protocol/contract/claims.ts';
import { headerProofText } from '../../protocol/records/node-proof.ts';
import type { KnownAuthorityKeys } from './known-keys.ts';
import {
  judgeTimestamp,
  type ReceivedRequest,
  requestIdentityOf,
  type SignedRequest,
} from './signed-request.ts';

/** Base64 of 32 and of 64 bytes. */
const KEY_LENGTH = 44;
const SIGNATURE_LENGTH = 88;
const MAX_HEADER_LENGTH = 1024;
const MAX_NONCE_LENGTH = 128;
const HEADER_NONCE = /^[A-Za-z0-9._:-]{1,128}$/;
const HEADER_NAMES = ['v', 'key', 'ts', 'nonce', 'sig'] as const;

export interface NodeAuthSettings {
  /** A proof in a header names one of the audiences. */
  readonly authorityKeys: Pick<KnownAuthorityKeys, 'audiences'>;
  readonly toleranceMs: number;
}

/** The parts of a proof, in either form. */
interface Proof {
  readonly timestamp: string;
  readonly nonce: string;
  readonly signature: string;
}

/**
 * Checks the proof that the sender has the private half of `publicKey`, which may be any text. `isRepeat` is null if no
 * answer is kept.
 */
export function judgeNode(
  publicKey: string,
  header: string,
  request: ReceivedRequest,
  isRepeat: boolean | null,
  rawBody: Uint8Array,
  { authorityKeys, toleranceMs }: NodeAuthSettings,
): NodeClaim {
  const proof = header === '' ? bodyProof(request.body) : headerProof(header, publicKey);
  const { remoteAddr, now } = request;
  if (proof === null) return failed(publicKey, '', 'missing_fields', remoteAddr);
  const timestamp = judgeTimestamp(proof.timestamp, now, toleranceMs);
  if (timestamp.verdict !== 'current') {
    return failed(publicKey, proof.nonce, timestamp.verdict, remoteAddr);
  }
  const { signedAt } = timestamp;
  const { nonce } = proof;
  const verdict = isSigned(publicKey, proof, header, request, rawBody, authorityKeys.audiences)
    ? 'valid'
    : 'invalid_signature';
  const identity = isRepeat === null ? null : requestIdentityOf(request, proof.signature, isRepeat);
  return { publicKey, signedAt, nonce, verdict, remoteAddr, identity };
}

/** Keys and signatures of the wrong length are refused before the canonical text of a long body is built. */
function isSigned(
  publicKey: string,
  proof: Proof,
  header: string,
  request: SignedRequest,
  rawBody: Uint8Array,
  audiences: readonly string[],
): boolean {
  if (publicKey.length !== KEY_LENGTH || proof.signature.length !== SIGNATURE_LENGTH) return false;
  // In the body form, every member except `signature` is signed, including unknown ones.
  const verifies = (text: string) => verifySignature(publicKey, text, proof.signature);
  if (header === '') return verifies(canonicalJson(request.body, 'signature'));
  const { method, path, query } = request;
  const { timestamp, nonce } = proof;
  const bodyDigest = sha256Hex(rawBody);
  const signed = { method, path, query, bodyDigest, key: publicKey, timestamp, nonce };
  return audiences.some((audience) => verifies(headerProofText({ ...signed, audience })));
}

function failed(
  publicKey: string,
  nonce: string,
  verdict: NodeProofVerdict,
  remoteAddr: string,
): NodeClaim {
  return { publicKey, signedAt: 0, nonce, verdict, remoteAddr, identity: null };
}

function bodyProof(body: JsonObject): Proof | null {
  const { timestamp, nonce, signature } = body;
  if (!isFilled(timestamp) || !isFilled(nonce) || !isFilled(signature)) return null;
  if (nonce.length > MAX_NONCE_LENGTH) return null;
  return { timestamp, nonce, signature };
}

function isFilled(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

function headerProof(header: string, publicKey: string): Proof | null {
  const parts = headerParts(header);
  if (parts === null || parts.v !== '1' || parts.key !== publicKey) return null;
  if (!HEADER_NONCE.test(parts.nonce)) return null;
  return { timestamp: parts.ts, nonce: parts.nonce, signature: parts.sig };
}

/** All five names exactly once, in any order; null for anything else. */
function headerParts(header: string): Record<(typeof HEADER_NAMES)[number], string> | null {
  if (header.length > MAX_HEADER_LENGTH) return null;
  const parts = new Map<string, string>();
  for (const part of header.split(';')) {
    const split = part.indexOf('=');
    const name = part.slice(0, Math.max(0, split)).trim();
    if (split === -1 || parts.has(name)) return null;
    parts.set(name, part.slice(split + 1).trim());
  }
  const [v, key, ts, nonce, sig] = HEADER_NAMES.map((name) => parts.get(name) ?? '');
  if (parts.size !== HEADER_NAMES.length || !v || !key || !ts || !nonce || !sig) return null;
  return { v, key, ts, nonce, sig };
}
