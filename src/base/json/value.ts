/**
 * A JSON number that was written with a point or an exponent. The network keeps `1` and `1.0` apart
 * from the request text to the signed text, so a float never becomes a plain JavaScript number.
 */
export class JsonFloat {
  readonly value: number;

  constructor(value: number) {
    this.value = value;
  }

  /**
   * For `JSON.stringify`: the number if both spell it alike; throws otherwise, so that no signed text changes
   * unnoticed.
   */
  toJSON(): number {
    if (String(this.value) === floatText(this.value)) return this.value;
    const text = floatText(this.value);
    throw new TypeError(`JSON.stringify would write ${text} as ${this.value}; use recordText`);
  }
}

export type JsonObject = { readonly [name: string]: JsonValue };

/** Safe integers are `number`, larger ones `bigint`; every other number is a `JsonFloat`. */
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

export function isList(value: JsonValue | undefined): value is readonly JsonValue[] {
  return Array.isArray(value);
}

export function areTexts(list: readonly JsonValue[]): list is readonly string[] {
  return list.every((item) => typeof item === 'string');
}

/** The shortest digits that read back as the same double, in the layout of [core-1-2]. */
export function floatText(value: number): string {
  if (value === 0) return Object.is(value, -0) ? '-0.0' : '0.0';
  const size = Math.abs(value);
  // Between these bounds JavaScript uses the same layout, except for whole numbers.
  if (size >= 1e-4 && size < 1e16) return Number.isInteger(value) ? `${value}.0` : String(value);
  const text = value.toExponential();
  const exponentAt = text.indexOf('e') + 2;
  return text.length - exponentAt > 1
    ? text
    : `${text.slice(0, exponentAt)}0${text.slice(exponentAt)}`;
}
