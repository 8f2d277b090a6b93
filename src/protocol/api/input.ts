/** What was read of a request: the input of its handler, or why there is none. */
import type { JsonObject } from '../../base/json/value.ts';
import type { RefusalName } from '../refusals.ts';

/** An operator learns of a refusal only once admitted, so it is passed on like an input. */
export type Input<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly refusal: RefusalName; readonly details: JsonObject };

export function refused(refusal: RefusalName, details: JsonObject = {}): Input<never> {
  return { ok: false, refusal, details };
}

/** Maps an input; a refusal is returned unchanged. */
export function mapped<From, To>(input: Input<From>, map: (value: From) => To): Input<To> {
  return input.ok ? { ok: true, value: map(input.value) } : input;
}
