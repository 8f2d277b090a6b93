/** Node proofs: the signed body [core-3-1] and the header `X-Mesh-Node-Proof` [core-3-3]. */
import type { JsonObject } from '../base/json/value.ts';
import { canonicalJson } from '../base/json/write.ts';
import type { Query } from './http.ts';
import { type SigningKey, signText } from './keys.ts';
import type { Stamp } from './options.ts';
import { portableSha256 } from './sha256.ts';

export const NODE_PROOF_HEADER = 'X-Mesh-Node-Proof';

export interface NodeRequest extends Stamp {
  readonly method: string;
  /** Path as the authority reads it: percent-decoded, without query. */
  readonly path: string;
  readonly query: Query;
  /** The authority's public key. */
  readonly audience: string;
  /** The request body exactly as sent; empty when there is none. */
  readonly bodyText: string;
}

/** Returns the body with a timestamp, a nonce and the signature over all other members. */
export async function signNodeBody(
  body: JsonObject,
  key: SigningKey,
  { timestamp, nonce }: Stamp,
): Promise<JsonObject> {
  const signed = { ...body, timestamp, nonce };
  return { ...signed, signature: await signText(key, nodeBodyText(signed)) };
}

/** The text that the signature of a stamped body covers. */
export function nodeBodyText(stamped: JsonObject): string {
  return canonicalJson(stamped, 'signature');
}

/** Returns the value of the proof header; the body then needs no signature. */
export async function nodeProofHeader(request: NodeRequest, key: SigningKey): Promise<string> {
  const { method, path, query, audience, timestamp, nonce } = request;
  const text = canonicalJson({
    v: 1,
    purpose: 'node-proof',
    method,
    path,
    query,
    audience,
    body_sha256: portableSha256.hex(request.bodyText),
    key: key.publicKey,
    timestamp,
    nonce,
  });
  const sig = await signText(key, text);
  return `v=1; key=${key.publicKey}; ts=${timestamp}; nonce=${nonce}; sig=${sig}`;
}
