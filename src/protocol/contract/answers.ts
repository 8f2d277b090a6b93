import type { JsonObject } from '../../base/json/value.ts';
import type { RefusalName } from '../refusals.ts';

/**
 * The answer of the authority. The value is JSON text, because text is the cheapest thing to send between threads, and
 * serialization stays in one place.
 */
export type Answer = (
  | { readonly ok: true; readonly json: string }
  | { readonly ok: false; readonly refusal: RefusalName; readonly details: JsonObject }
) & {
  /** Set if this is the answer that the same request got when it first arrived [core-2-5]. */
  readonly isRepeated?: true;
};
