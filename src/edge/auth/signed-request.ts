import type { JsonObject } from '../../base/json/value.ts';

/** What a signature over a request can cover. */
export interface SignedRequest {
  /** Upper case. */
  readonly method: string;
  /** Percent-decoded, without query. */
  readonly path: string;
  readonly query: { readonly [name: string]: readonly string[] };
  readonly body: JsonObject;
}
