/**
 * A JSON number that was written with a point or an exponent. The network keeps `1` and `1.0` apart
 * from the request text to the signed text, so a float never becomes a plain JavaScript number.
 */
export class JsonFloat {
  readonly value: number;

  constructor(value: number) {
    this.value = value;
  }
}

export type JsonObject = { readonly [name: string]: JsonValue };

/** Integers are `number` when safe and `bigint` beyond; every other number is a `JsonFloat`. */
export type JsonValue =
  | null
  | boolean
  | string
  | number
  | bigint
  | JsonFloat
  | readonly JsonValue[]
  | JsonObject;

export function isJsonObject(value: unknown): value is JsonObject {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    !(value instanceof JsonFloat)
  );
}
