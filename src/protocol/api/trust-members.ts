/**
 * What the requests of the trust protocol share: the schemas of members, and their checks. Each check has its place in
 * the order and its code [trust-5], [trust-6], so each request lists its own checks. A route has few codes, so the
 * details of a refusal contain the exact cause.
 */
import Type, { type TNull, type TOptional, type TSchema, type TUnion } from 'typebox';
import {
  areTexts,
  isJsonObject,
  isList,
  JsonFloat,
  type JsonObject,
  type JsonValue,
} from '../../base/json/value.ts';
import { parseRequestDatetime, type RequestDatetime } from '../../base/timestamp.ts';
import { type Fresh, MAX_CAPABILITIES, MAX_KEYS } from '../records/record.ts';
import { demand, type RefusalName, refuse } from '../refusals.ts';

type Member = JsonValue | undefined;

/** Absent or empty: null, false, zero, and text, lists and objects with nothing in them. */
export function isMissing(value: Member): boolean {
  if (value === undefined || value === null || value === false || value === '') return true;
  if (value === 0 || (value instanceof JsonFloat && value.value === 0)) return true;
  if (Array.isArray(value)) return value.length === 0;
  return isJsonObject(value) && Object.keys(value).length === 0;
}

/** Refuses if any of the members is missing. */
export function demandPresent(
  body: JsonObject,
  names: readonly string[],
  refusal: RefusalName,
): void {
  for (const name of names) demand(!isMissing(body[name]), refusal, `missing_${name}`);
}

/** Reads a member; null if it does not have the form. */
type Reader<T> = (value: Member, fresh?: Fresh) => T | null;

/** A member as it is read; refuses any other. */
export function memberOf<T>(
  body: JsonObject,
  name: string,
  read: Reader<T>,
  refusal: RefusalName,
  fresh?: Fresh,
): T {
  return read(body[name], fresh) ?? refuse(refusal, `invalid_${name}`);
}

/** The same for a member that may be absent or empty, and then counts as `otherwise`. */
export function memberOr<T, Otherwise>(
  body: JsonObject,
  name: string,
  otherwise: Otherwise,
  read: Reader<T>,
  refusal: RefusalName,
): T | Otherwise {
  return isMissing(body[name]) ? otherwise : memberOf(body, name, read, refusal);
}

export function textOf(value: Member): string | null {
  return typeof value === 'string' ? value : null;
}

export function listOf(value: Member): readonly JsonValue[] | null {
  return isList(value) ? value : null;
}

export function textsOf(value: Member): string[] | null {
  return isList(value) && areTexts(value) ? [...value] : null;
}

/** A list, with items of any type, that is no longer than the limit for capabilities. */
export function capabilityListOf(value: Member): readonly JsonValue[] | null {
  return isList(value) && value.length > 0 && value.length <= MAX_CAPABILITIES ? value : null;
}

/** The value as a safe integer, also from an integral float; null for anything else. */
export function integerOf(value: Member): number | null {
  const number = value instanceof JsonFloat ? value.value : value;
  return typeof number === 'number' && Number.isSafeInteger(number) ? number : null;
}

/** A free-form object; `{}` if missing, null for anything else. */
export function freeFormOf(value: Member): JsonObject | null {
  if (isMissing(value)) return {};
  return isJsonObject(value) ? value : null;
}

/** A timestamp that a record can hold. */
export function timestampOf(value: Member): RequestDatetime | null {
  return typeof value === 'string' ? parseRequestDatetime(value) : null;
}

/** A validity window in the spelling of records; refuses a window that does not end after it begins. */
export function windowOf(
  body: JsonObject,
  refusal: RefusalName,
): { readonly valid_from: string; readonly valid_until: string } {
  const from = memberOf(body, 'valid_from', timestampOf, refusal);
  const until = memberOf(body, 'valid_until', timestampOf, refusal);
  demand(from.instant < until.instant, refusal, 'timestamp_order');
  return { valid_from: from.text, valid_until: until.text };
}

/** The keys that verify a record; by default the key of this authority. */
export const Keys = omittable(
  Type.Array(Type.String(), {
    maxItems: MAX_KEYS,
    description: 'Base64 Ed25519 public keys; an empty list accepts nothing',
  }),
);

/** A member that may be absent or null, with the same meaning. */
export function omittable<T extends TSchema>(schema: T): TOptional<TUnion<[T, TNull]>> {
  return Type.Optional(Type.Union([schema, Type.Null()]));
}

export const Capabilities = Type.Array(Type.String({ minLength: 1 }), {
  minItems: 1,
  maxItems: MAX_CAPABILITIES,
});

export const RequestTimestamp = Type.String({
  description: 'ISO 8601; without an offset it is UTC',
});
