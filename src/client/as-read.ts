import { parseJson } from '../base/json/parse.ts';
import type { JsonObject } from '../base/json/value.ts';
import { jsonText } from '../base/json/write.ts';

/**
 * Returns the object to sign, as the authority will read it: a plain number such as 1e-7 becomes a float, whose
 * canonical text differs from JavaScript's.
 */
export function asRead(sent: JsonObject): JsonObject {
  return parseJson(jsonText(sent)) as JsonObject;
}
