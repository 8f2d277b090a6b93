/** Node proofs: the signed body [core-3-1] and the header `X-Mesh-Node-Proof` [core-3-3]. */
import type { JsonObject } from '../json/value.ts';
import { canonicalJson } from '../json/write.ts';
import type { Query } from './http.ts';
import type { KeyPair } from './keys.ts';
import type { Stamp } from './options.ts';

export const NODE_PROOF_HEADER = 'X-Mesh-Node-Proof';

export interface NodeRequest extends Stamp {
  readonly method: string;
  /** The path as the authority reads it: percent-decoded, without query. */
  readonly path: string;
  readonly query: Query;
  /** The authority's public key. */
  readonly audience: string;
  /** The request body exactly as sent; empty when there is none. */
  readonly bodyText: string;
}

/** The body with timestamp, nonce and the signature over all its other members. */
export function signNodeBody(body: JsonObject, key: KeyPair, stamp: Stamp): JsonObject {
  const signed = { ...body, timestamp: stamp.timestamp, nonce: stamp.nonce };
  return { ...signed, signature: key.sign(canonicalJson(signed, 'signature')) };
}

/** The value of the proof header; the body then needs no signature of its own. */
export async function nodeProofHeader(request: NodeRequest, key: KeyPair): Promise<string> {
  const { method, path, query, audience, timestamp, nonce } = request;
  const text = canonicalJson({
    v: 1,
    purpose: 'node-proof',
    method,
    path,
    query,
    audience,
    body_sha256: await sha256Hex(request.bodyText),
    key: key.publicKey,
    timestamp,
    nonce,
  });
  const sig = key.sign(text);
  return `v=1; key=${key.publicKey}; ts=${timestamp}; nonce=${nonce}; sig=${sig}`;
}

async function sha256Hex(text: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
