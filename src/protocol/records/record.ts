/**
 * The shape of a signed record, and the steps that every received record goes through [core-1-4]: fill in defaults,
 * drop unknown members, rewrite datetimes, then check the types. The result is canonicalized, verified, stored and
 * served; the received text itself never is.
 */
import Type, {
  type Static,
  type TNull,
  type TObject,
  type TProperties,
  type TSchema,
  type TUnion,
} from 'typebox';
import { Compile, type Validator } from 'typebox/compile';
import { Format } from 'typebox/format';
import { isJsonObject, JsonFloat, type JsonObject, type JsonValue } from '../../base/json/value.ts';
import { formatInstant, parseDatetime } from '../../base/timestamp.ts';

/** Bounds on the work that one record or request can cause [trust-1-5]. */
export const MAX_KEYS = 32;
export const MAX_SIGNATURES = 16;
export const MAX_VOTES = 256;
export const MAX_VALIDATORS = 256;
export const MAX_PATH_NODES = 64;
export const MAX_CAPABILITIES = 4096;
export const MAX_SOURCES = 1024;
export const MAX_ACCESS_TYPES = 1024;
/** The most characters of a free text, and of an agent descriptor in canonical form. */
export const MAX_TEXT_LENGTH = 1024;
export const MAX_DESCRIPTOR_LENGTH = 64 * 1024;
/** The most capability tags of an agent, each of which has an index of its own. */
export const MAX_TAGS = 128;

/** The form that `canonicalDatetime` produces, which also checks that the day and hour exist. */
const SPELLING = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{6})?(?:Z|[+-]\d\d:\d\d)$/;
Format.Set('date-time', (text) => SPELLING.test(text));

/** A record field of type datetime: canonical spelling, never naive. */
export const Datetime = Type.String({ format: 'date-time' });
export const SignatureItem = Type.Object({ key_id: Type.String(), sig: Type.String() });
export const Signatures = Type.Array(SignatureItem, { default: [] });
/** Signatures of a trust-protocol record, of which there are never many [trust-1-5]. */
export const BoundedSignatures = Type.Array(SignatureItem, {
  default: [],
  maxItems: MAX_SIGNATURES,
});
/** A free-form object, kept completely, with verbatim strings and numbers as written. */
export const FreeForm = Type.Refine(
  Type.Unsafe<JsonObject>({ type: 'object', additionalProperties: true, default: {} }),
  isJsonObject,
);
/** A non-negative integer of any size. */
export const Natural = Type.Refine(
  Type.Unsafe<number | bigint>({ minimum: 0, natural: true }),
  (value) => (typeof value === 'bigint' || Number.isSafeInteger(value)) && value >= 0,
);

/** A required free-form object. */
export const Whole = Type.Refine(
  Type.Unsafe<JsonObject>({ type: 'object', additionalProperties: true }),
  isJsonObject,
);
/** An id that each reader generates if it is absent; if the id is signed, such a record never verifies. */
export const FreshId = Type.Unsafe<string>({ type: 'string', fresh: 'uuid' });
/** A datetime that defaults to the reader's own time. */
export const FreshDatetime = Type.Unsafe<string>({
  type: 'string',
  format: 'date-time',
  fresh: 'now',
});

export type SignatureItem = Static<typeof SignatureItem>;

/** The source of missing ids and times. */
export interface Fresh {
  /** Milliseconds since the epoch. */
  readonly now: number;
  uuid(): string;
}

/** A member whose default is null. */
export function nullable<T extends TSchema>(schema: T): TUnion<[T, TNull]> {
  return Type.Union([schema, Type.Null()], { default: null });
}

/**
 * Reads an unknown value as a record of the schema; null if it is not one. Without a source of fresh values, members
 * that could be generated are required.
 */
export type RecordReader<T> = (received: unknown, fresh?: Fresh) => T | null;

/**
 * Creates the reader of a record; `isConsistent` checks rules between fields. The schema is analyzed lazily, on the
 * first record, because a command reads only few kinds of records.
 */
export function recordReader<P extends TProperties>(
  schema: TObject<P>,
  isConsistent: (record: Static<TObject<P>>) => boolean = () => true,
): RecordReader<Static<TObject<P>>> {
  let analysis: Analysis<P> | undefined;
  return (received, fresh) => {
    analysis ??= { shape: Compile(schema), normalize: normalizerOf(schema) };
    const normalized = analysis.normalize(received, fresh ?? null);
    return analysis.shape.Check(normalized) && isConsistent(normalized) ? normalized : null;
  };
}

interface Analysis<P extends TProperties> {
  readonly shape: Validator<TProperties, TObject<P>>;
  readonly normalize: Normalizer;
}

/** Converts a value to the normal form of its schema; a value that does not fit the schema is left unchanged. */
type Normalizer = (value: unknown, fresh: Fresh | null) => unknown;

function normalizerOf(schema: TSchema): Normalizer {
  if (Type.IsObject(schema)) return objectNormalizer(schema);
  if (Type.IsArray(schema)) return arrayNormalizer(normalizerOf(schema.items));
  if (Type.IsUnion(schema)) return nullableNormalizer(schema);
  if (Type.IsInteger(schema) || 'natural' in schema) return integralFloat;
  return isDatetime(schema) ? canonicalDatetime : asItIs;
}

function asItIs(value: unknown): unknown {
  return value;
}

function arrayNormalizer(normalizeItem: Normalizer): Normalizer {
  if (normalizeItem === asItIs) return asItIs;
  return (value, fresh) =>
    Array.isArray(value) ? value.map((item) => normalizeItem(item, fresh)) : value;
}

/** The only unions in records are of a type and null. */
function nullableNormalizer({ anyOf: [given] }: TUnion): Normalizer {
  const normalize = given === undefined ? asItIs : normalizerOf(given);
  return (value, fresh) => (value === null ? null : normalize(value, fresh));
}

interface Member {
  readonly name: string;
  readonly normalize: Normalizer;
  /** The default of the member; undefined if it is required. */
  readonly fallback: JsonValue | undefined;
  readonly fresh: unknown;
  /** Without a default: null counts as absent, because writers differ in which of them they send. */
  readonly isOptional: boolean;
}

function objectNormalizer({ properties }: TObject): Normalizer {
  const members = Object.entries(properties).map(([name, schema]): Member => {
    const fallback = 'default' in schema ? (schema.default as JsonValue) : undefined;
    const fresh = 'fresh' in schema ? schema.fresh : undefined;
    const isOptional = Type.IsOptional(schema);
    return { name, normalize: normalizerOf(schema), fallback, fresh, isOptional };
  });
  return (value, fresh) => {
    if (!isJsonObject(value)) return value;
    const normalized: { [name: string]: unknown } = {};
    for (const member of members) {
      const { name } = member;
      const given = Object.hasOwn(value, name) ? value[name] : absent(member, fresh);
      if (given === undefined || (given === null && member.isOptional)) continue;
      normalized[name] = member.normalize(given, fresh);
    }
    return normalized;
  };
}

function absent(member: Member, fresh: Fresh | null): JsonValue | undefined {
  if (fresh === null || member.fresh === undefined) return member.fallback;
  return member.fresh === 'uuid' ? fresh.uuid() : formatInstant(fresh.now);
}

function isDatetime(schema: object): boolean {
  return 'format' in schema && schema.format === 'date-time';
}

/** Integer fields accept integer tokens, and also `1.0` as 1. */
function integralFloat(value: unknown): unknown {
  if (!(value instanceof JsonFloat) || !Number.isInteger(value.value)) return value;
  return Number.isSafeInteger(value.value) ? value.value : BigInt(value.value);
}

/** Anything but a datetime with an offset becomes an empty string, which no datetime field accepts, nullable or not. */
function canonicalDatetime(value: unknown): unknown {
  if (typeof value !== 'string') return '';
  const datetime = parseDatetime(value);
  return datetime === null || datetime.naive ? '' : datetime.text;
}

/** Milliseconds since the epoch of a record's datetime, which its reader has already checked. */
export function instantOf(datetime: string): number {
  return parseDatetime(datetime)?.instant ?? Number.NaN;
}
