/** Operator signatures [core-2-2]. Version 1 is for authorities that do not accept version 2. */
import type { JsonObject } from '../base/json/value.ts';
import { canonicalJson } from '../base/json/write.ts';
import type { Query } from './http.ts';
import { type SigningKey, signText } from './keys.ts';
import type { Headers, Stamp } from './options.ts';

export type SignatureVersion = 1 | 2;

export interface OperatorRequest extends Stamp {
  readonly keyId: string;
  readonly method: string;
  /** The path as the authority reads it: percent-decoded, without query. */
  readonly path: string;
  readonly query: Query;
  /** The authority's public key; version 1 does not bind it. */
  readonly audience: string;
  readonly body: JsonObject;
}

/** The four headers that carry an operator's signature. */
export async function operatorHeaders(
  request: OperatorRequest,
  key: SigningKey,
  version: SignatureVersion = 2,
): Promise<Headers> {
  return {
    'X-Admin-Key-Id': request.keyId,
    'X-Admin-Timestamp': request.timestamp,
    'X-Admin-Nonce': request.nonce,
    'X-Admin-Signature': await signText(key, operatorPayload(request, version)),
  };
}

/** The text an operator signs. */
export function operatorPayload(request: OperatorRequest, version: SignatureVersion): string {
  const { body, keyId, timestamp, nonce } = request;
  const common = { body, key_id: keyId, timestamp, nonce };
  if (version === 1) return canonicalJson(common);
  const { method, path, query, audience } = request;
  return canonicalJson({ ...common, v: 2, method, path, query, audience });
}
