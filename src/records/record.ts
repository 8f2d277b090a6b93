/**
 * The shape of a signed record and the one path every received record takes (wire rules 1.4): fill the
 * defaults, drop unknown members, rewrite datetimes, then check the types. What comes out is what is
 * canonicalised, verified, stored and served; the received text itself never is.
 */
import Type, { type Static, type TObject, type TProperties, type TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { isJsonObject, JsonFloat, type JsonObject, type JsonValue } from '../json/value.ts';
import { parseDatetime } from '../timestamp.ts';

/** A record field of type datetime: canonical spelling, never naive. */
export const Datetime = Type.String({ format: 'date-time' });
export const SignatureItem = Type.Object({ key_id: Type.String(), sig: Type.String() });
export const Signatures = Type.Array(SignatureItem, { default: [] });
/** A free-form object: kept whole, with its strings verbatim and its numbers by token. */
export const FreeForm = Type.Refine(
  Type.Unsafe<JsonObject>({ type: 'object', additionalProperties: true, default: {} }),
  isJsonObject,
);
/** A whole number of any size that is not negative. */
export const Natural = Type.Refine(
  Type.Unsafe<number | bigint>({ minimum: 0, natural: true }),
  (value) => (typeof value === 'bigint' || Number.isSafeInteger(value)) && value >= 0,
);

export type SignatureItem = Static<typeof SignatureItem>;

/** Reads an unknown value as a record of the schema; null when it is not one. */
export type RecordReader<T> = (received: unknown) => T | null;

/** Compiles the reader of a record; `isConsistent` holds the rules between fields. */
export function recordReader<P extends TProperties>(
  schema: TObject<P>,
  isConsistent: (record: Static<TObject<P>>) => boolean = () => true,
): RecordReader<Static<TObject<P>>> {
  const shape = Compile(schema);
  return (received) => {
    const normalised = normalise(schema, received);
    return shape.Check(normalised) && isConsistent(normalised) ? normalised : null;
  };
}

function normalise(schema: TSchema, value: unknown): unknown {
  if (Type.IsObject(schema)) return normaliseObject(schema, value);
  if (Type.IsArray(schema)) {
    return Array.isArray(value) ? value.map((item) => normalise(schema.items, item)) : value;
  }
  if (Type.IsInteger(schema) || 'natural' in schema) return integralFloat(value);
  if (Type.IsString(schema) && isDatetime(schema)) return canonicalDatetime(value);
  return value;
}

function normaliseObject(schema: TObject, value: unknown): unknown {
  if (!isJsonObject(value)) return value;
  const normalised: { [name: string]: unknown } = {};
  for (const [name, member] of Object.entries(schema.properties)) {
    const given = Object.hasOwn(value, name) ? value[name] : defaultOf(member);
    if (given !== undefined) normalised[name] = normalise(member, given);
  }
  return normalised;
}

function isDatetime(schema: object): boolean {
  return 'format' in schema && schema.format === 'date-time';
}

function defaultOf(schema: TSchema): JsonValue | undefined {
  return 'default' in schema ? (schema.default as JsonValue) : undefined;
}

/** Integer fields take `1.0` as 1 and nothing else that is not an integer token. */
function integralFloat(value: unknown): unknown {
  if (!(value instanceof JsonFloat) || !Number.isInteger(value.value)) return value;
  return Number.isSafeInteger(value.value) ? value.value : BigInt(value.value);
}

/** Anything that is not an aware datetime becomes null, which no datetime field accepts. */
function canonicalDatetime(value: unknown): unknown {
  if (typeof value !== 'string') return null;
  const datetime = parseDatetime(value);
  return datetime === null || datetime.naive ? null : datetime.text;
}
