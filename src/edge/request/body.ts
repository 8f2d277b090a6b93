/** Request bodies, as they arrive and as JSON objects. */
import { parseJsonBytes } from '../../base/json/bytes.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json/value.ts';
import { Refusal } from '../../protocol/refusals.ts';

export type ReceivedBody =
  | Uint8Array
  /** The body exceeded the limit of its route. */
  | 'too_large'
  /** The body was dropped before its end. */
  | 'dropped'
  /** A proxy may have read a different length. */
  | 'ambiguous';

/** Parses a body as a JSON object; an empty body is `{}`. Refuses anything else with a specific 400. */
export function parseBody(bytes: Uint8Array, maxValues?: number): JsonObject {
  if (bytes.byteLength === 0) return {};
  const value = parsed(bytes, maxValues);
  if (!isJsonObject(value)) throw new Refusal('invalid_json_object');
  return value;
}

function parsed(bytes: Uint8Array, maxValues: number | undefined): JsonValue {
  try {
    return parseJsonBytes(bytes, maxValues);
  } catch (cause) {
    if (cause instanceof SyntaxError) throw new Refusal('invalid_json');
    throw cause;
  }
}
