/** Request bodies: from bytes to a JSON object, and from an object to a value that fits its schema. */
import type { Static, TObject } from 'typebox';
import { parseJsonBytes } from '../base/json/bytes.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../base/json/value.ts';
import { fitting } from '../protocol/api/fit.ts';
import { type Input, refused } from '../protocol/api/input.ts';
import { Refusal, type RefusalName } from '../protocol/refusals.ts';

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

export interface BodyRules {
  /** The refusal for each invalid field, in the order of the checks; one without an entry is a 422. */
  readonly codes?: { readonly [field: string]: RefusalName };
  /** Fields that also accept an integral float or a string of decimal digits [core-4-1]. */
  readonly wholeNumbers?: readonly string[];
}

export interface BodyReader<Schema extends TObject> {
  readonly schema: Schema;
  read(body: JsonObject): Input<Static<Schema>>;
}

/** The reader of a body. */
export function bodyReader<Schema extends TObject>(
  schema: Schema,
  { codes = {}, wholeNumbers = [] }: BodyRules = {},
): BodyReader<Schema> {
  const fit = fitting(schema, wholeNumbers);
  const order = Object.entries(codes);
  return {
    schema,
    read(sent) {
      const { body, errors } = fit(sent);
      const wrong = order.find(([name]) => errors.some(({ loc }) => loc[1] === name));
      if (wrong !== undefined) return refused(wrong[1]);
      if (errors.length > 0) return refused('request_validation_failed', { errors });
      return { ok: true, value: body as Static<Schema> };
    },
  };
}
