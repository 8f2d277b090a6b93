import { parseJson } from '../base/json/parse.ts';
import type { JsonObject } from '../base/json/value.ts';
import { jsonText } from '../base/json/write.ts';

/**
 * The object as the authority will read it, to be signed: a plain number such as 1e-7 becomes the float
 * it is on the wire, whose canonical text differs from JavaScript's.
 */
export function asRead(sent: JsonObject): JsonObject {
  return parseJson(jsonText(sent)) as JsonObject;
}
