/**
 * What the routes of the trust protocol share: their schemas, and the checks of members. Each check has its place in
 * the order and its code [trust-5], [trust-6], so each route lists its own checks. A route has few codes, so the
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
import { demand, Refusal, type RefusalName, refuse } from '../../base/refusal.ts';
import { parseRequestDatetime, type RequestDatetime } from '../../base/timestamp.ts';
import type { Input } from '../../protocol/api/input.ts';
import type { CallInput, TrustCall } from '../../protocol/contract/calls.ts';
import { MAX_CAPABILITIES, MAX_KEYS } from '../../protocol/records/bounds.ts';
import type { Fresh } from '../../protocol/records/record.ts';
import type { Edge } from '../edge.ts';
import type { RouteEntry, RouteRequest } from '../route.ts';
import { operatorRoute } from './operator-route.ts';

type Member = JsonValue | undefined;

/** Reads the input from a body; a refusal is answered only after the operator is admitted. */
export function inputOf<T>(read: () => T): Input<T> {
  try {
    return { ok: true, value: read() };
  } catch (cause) {
    if (!(cause instanceof Refusal)) throw cause;
    return { ok: false, refusal: cause.refusal, details: cause.details };
  }
}

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

/** Whether the value is a list, with items of any type, that is no longer than the limit for capabilities. */
export function isCapabilityList(value: Member): value is readonly JsonValue[] {
  return isList(value) && value.length > 0 && value.length <= MAX_CAPABILITIES;
}

export function areCapabilities(list: readonly JsonValue[]): list is readonly string[] {
  return areTexts(list) && !list.includes('');
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

/** Refuses a value that is not a timestamp, or that no record can hold. */
export function timestampOf(body: JsonObject, name: string, refusal: RefusalName): RequestDatetime {
  const value = body[name];
  const datetime = typeof value === 'string' ? parseRequestDatetime(value) : null;
  return datetime ?? refuse(refusal, `invalid_${name}`);
}

/** A validity window in the spelling of records; refuses a window that does not end after it begins. */
export function windowOf(
  body: JsonObject,
  refusal: RefusalName,
): { readonly validFrom: string; readonly validUntil: string } {
  const from = timestampOf(body, 'valid_from', refusal);
  const until = timestampOf(body, 'valid_until', refusal);
  demand(from.instant < until.instant, refusal, 'timestamp_order');
  return { validFrom: from.text, validUntil: until.text };
}

/** The source of ids and times for members that each reader generates. */
export function freshFor({ now }: RouteRequest, { runtime }: Edge): Fresh {
  return { now, uuid: runtime.uuid };
}

/** The keys that verify a record; by default the key of this authority. */
export const Keys = optional(
  Type.Array(Type.String(), {
    maxItems: MAX_KEYS,
    description: 'Base64 Ed25519 public keys; an empty list accepts nothing',
  }),
);

/** A member that may be absent or null, with the same meaning. */
export function optional<T extends TSchema>(schema: T): TOptional<TUnion<[T, TNull]>> {
  return Type.Optional(Type.Union([schema, Type.Null()]));
}

export const Capabilities = Type.Array(Type.String({ minLength: 1 }), {
  minItems: 1,
  maxItems: MAX_CAPABILITIES,
});

export const RequestTimestamp = Type.String({
  description: 'ISO 8601; without an offset it is UTC',
});

type Described = Pick<
  RouteEntry,
  'path' | 'summary' | 'description' | 'body' | 'example' | 'exampleNeeds' | 'answer' | 'refusals'
>;

interface RecordRoute<Name extends TrustCall> extends Described {
  readonly command: Name;
  /** The input of the command from the body; throws the refusal of an invalid body. */
  read(body: JsonObject, fresh: Fresh): CallInput<Name>;
}

/** A route on which the authority builds and signs a record for an operator of standard tier. */
export function recordRoute<Name extends TrustCall>({
  command,
  read,
  ...described
}: RecordRoute<Name>): RouteEntry {
  return operatorRoute({
    ...described,
    method: 'POST',
    call: command,
    limit: 'ADMIN',
    created: 'always',
    input: (request, edge) => inputOf(() => read(request.body, freshFor(request, edge))),
  });
}
