/** The header that proves that a webhook request comes from the authority [events-6], by a signature over its body. */
import type { Signer } from '../../base/crypto/primitives.ts';
import { canonicalJson } from '../../base/json/write.ts';

export const WEBHOOK_PROOF_HEADER = 'X-Mesh-Authority-Proof';

export interface WebhookProof {
  /** Base64 of the authority's public key. */
  readonly key: string;
  /** The time of signing, verbatim. */
  readonly timestamp: string;
  /** Base64. */
  readonly signature: string;
}

const FORM = /^v=1; key=([A-Za-z0-9+/]{43}=); ts=([0-9T:.-]{19,26}Z); sig=([A-Za-z0-9+/]{86}==)$/;

/** Null unless the header has exactly the expected form. */
export function readWebhookProof(header: string): WebhookProof | null {
  const [, key, timestamp, signature] = FORM.exec(header) ?? [];
  if (key === undefined || timestamp === undefined || signature === undefined) return null;
  return { key, timestamp, signature };
}

/** The value of the header; `bodySha256` in lower-case hex. */
export function webhookProof(bodySha256: string, timestamp: string, signer: Signer): string {
  const key = signer.publicKey;
  const signature = signer.sign(webhookProofText(bodySha256, { key, timestamp }));
  return `v=1; key=${key}; ts=${timestamp}; sig=${signature}`;
}

/** The text that the signature covers. No other signed text has this purpose. */
export function webhookProofText(
  bodySha256: string,
  { key, timestamp }: Pick<WebhookProof, 'key' | 'timestamp'>,
): string {
  return canonicalJson({ v: 1, purpose: 'webhook', body_sha256: bodySha256, key, timestamp });
}
