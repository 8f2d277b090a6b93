/** Reads the fields of a form; what is wrong with one becomes a sentence for the operator. */
import { parseJson } from '../base/json/parse.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../base/json/value.ts';
import { FormProblem } from './action.ts';

export function textIn(form: URLSearchParams, name: string): string {
  return (form.get(name) ?? '').trim();
}

/** The lines of a field that are not empty. */
export function linesIn(form: URLSearchParams, name: string): string[] {
  return textIn(form, name)
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

/** Null if the field is empty. */
export function wholeIn(form: URLSearchParams, name: string, what: string): number | null {
  const text = textIn(form, name);
  if (text === '') return null;
  if (/^[1-9]\d{0,6}$/.test(text)) return Number(text);
  throw new FormProblem(`${what} must be a whole number, 1 or more.`);
}

/** The JSON object that was pasted; numbers stay as they were written, so that signatures stay valid. */
export function pastedObject(form: URLSearchParams, name: string, what: string): JsonObject {
  let value: JsonValue;
  try {
    value = parseJson(textIn(form, name));
  } catch {
    throw new FormProblem(`Paste the JSON text of ${what}; this is not JSON.`);
  }
  if (!isJsonObject(value)) throw new FormProblem(`Paste the JSON object of ${what}.`);
  return value;
}
