import type { JsonObject } from '../json/value.ts';
import type { RefusalName } from '../refusal.ts';

/**
 * What comes back from the authority. The value is already JSON text: text is what crosses between
 * threads at the least cost, and the authority writes it in one place.
 */
export type Answer =
  | { readonly ok: true; readonly json: string }
  | { readonly ok: false; readonly refusal: RefusalName; readonly details: JsonObject };
