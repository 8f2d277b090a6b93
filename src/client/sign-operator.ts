/** Operator signatures [core-2-2]. */
import type { JsonObject } from '../base/json/value.ts';
import { canonicalJson } from '../base/json/write.ts';
import type { Query } from './http.ts';
import { type SigningKey, signText } from './keys.ts';
import type { Headers, Stamp } from './options.ts';

export interface OperatorRequest extends Stamp {
  readonly keyId: string;
  readonly method: string;
  /** The path as the authority reads it: percent-decoded, without query. */
  readonly path: string;
  readonly query: Query;
  /** The authority's public key. */
  readonly audience: string;
  readonly body: JsonObject;
}

/** The four headers that carry an operator's signature. */
export async function operatorHeaders(request: OperatorRequest, key: SigningKey): Promise<Headers> {
  return {
    'X-Admin-Key-Id': request.keyId,
    'X-Admin-Timestamp': request.timestamp,
    'X-Admin-Nonce': request.nonce,
    'X-Admin-Signature': await signText(key, operatorPayload(request)),
  };
}

/** The text an operator signs. */
export function operatorPayload({ keyId, ...request }: OperatorRequest): string {
  const { body, timestamp, nonce, method, path, query, audience } = request;
  const signed = { v: 2, body, key_id: keyId, timestamp, nonce, method, path, query, audience };
  return canonicalJson(signed);
}
