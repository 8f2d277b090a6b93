/** Records that an operator pastes into a form. */
import { parseJson } from '../base/json/parse.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../base/json/value.ts';
import { FormProblem } from './action.ts';

/** The JSON object in a field; numbers stay as they were written, so that signatures stay valid. */
export function pastedObject(form: URLSearchParams, field: string, what: string): JsonObject {
  let value: JsonValue;
  try {
    value = parseJson(form.get(field) ?? '');
  } catch {
    throw new FormProblem(`Paste the JSON text of ${what}; this is not JSON.`);
  }
  if (!isJsonObject(value)) throw new FormProblem(`Paste the JSON object of ${what}.`);
  return value;
}
