import type { Static, TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { parseJson } from '../json/parse.ts';

/** Parses a text of the configuration; `what` names it in the error. */
export function checkedJson<Schema extends TSchema>(
  schema: Schema,
  text: string,
  what: string,
): Static<Schema> {
  let value: unknown;
  try {
    value = parseJson(text);
  } catch {
    throw new Error(`${what} is not valid JSON`);
  }
  const shape = Compile(schema);
  if (!shape.Check(value)) throw new Error(`${what} does not have the expected form`);
  return value;
}
