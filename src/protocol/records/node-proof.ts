/** The texts that nodes sign, which both sides build. */
import { canonicalJson } from '../../base/json/write.ts';

/** What the proof in the header of a request says [core-3-3]. */
export interface HeaderProof {
  readonly method: string;
  /** Percent-decoded, without query. */
  readonly path: string;
  readonly query: { readonly [name: string]: readonly string[] };
  /** The authority's public key. */
  readonly audience: string;
  /** SHA-256 of the body as sent, in hexadecimal. */
  readonly bodyDigest: string;
  /** The node's public key. */
  readonly key: string;
  readonly timestamp: string;
  readonly nonce: string;
}

/** The text of the proof in a header, which binds the route, the authority and the raw body. */
export function headerProofText(proof: HeaderProof): string {
  const { method, path, query, audience, bodyDigest, key, timestamp, nonce } = proof;
  return canonicalJson({
    v: 1,
    purpose: 'node-proof',
    method,
    path,
    query,
    audience,
    body_sha256: bodyDigest,
    key,
    timestamp,
    nonce,
  });
}

/** The text of an envelope that removes the agent of a node [core-5-6]; `signedAt` is verbatim. */
export function deleteEnvelopeText(publicKey: string, signedAt: string): string {
  return `delete-agent|v1|${publicKey}|${signedAt}`;
}
