import { parseJson } from '../base/json/parse.ts';
import type { JsonObject } from '../base/json/value.ts';
import { jsonText, type Writable } from '../base/json/write.ts';

/** JSON text, or the result of `parseJson`. */
export type Received = unknown;

/** The parsed value; null if it is not JSON, or has more values. */
export function parsed(received: Received, mostValues?: number): unknown {
  if (typeof received !== 'string') return received;
  try {
    return parseJson(received, mostValues);
  } catch {
    return null;
  }
}

/**
 * Returns the object to sign, as the authority will read it: a plain number such as 1e-7 becomes a float, whose
 * canonical text differs from JavaScript's.
 */
export function asRead(sent: Writable): JsonObject {
  return parseJson(jsonText(sent)) as JsonObject;
}

/**
 * Returns the JSON text of a record or any other answer, with each number as received. `JSON.stringify` would write 1.0
 * as 1 and break signatures; it throws for such numbers, and for integers beyond 2^53.
 */
export function recordText(record: object): string {
  return jsonText(record as Writable);
}
