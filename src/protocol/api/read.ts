/** Reads requests as declared. A schema is compiled for its first request: all of them would delay the start. */
import type { TObject } from 'typebox';
import { Compile, type Validator } from 'typebox/compile';
import { JsonFloat, type JsonObject, type JsonValue } from '../../base/json/value.ts';
import { Refusal, type RefusalName } from '../../base/refusal.ts';

import { type Input, refused } from './input.ts';
import type { Body, BodyCheck, Member, ReadContext } from './members.ts';
import type { Query } from './parameters.ts';

/** A request as it arrives: parsed, nothing checked. */
export interface Unread {
  readonly params: { readonly [name: string]: string };
  readonly query: { readonly [name: string]: readonly string[] };
  readonly body: JsonObject;
}

type Reader<Given> = (request: Unread, context: ReadContext) => Input<Given>;

/**
 * Reads the members of path and body. The first member that does not fit, or check that fails, in the order of the
 * declaration, decides the refusal; members without one of their own are a 422 that names every place.
 */
export function bodyReader<Given>(schema: TObject, members: Body): Reader<Given> {
  const entries = Object.entries(members);
  const wholeNumbers = entries.filter(([, { checks }]) => checks.isLenient).map(([name]) => name);
  let shape: Validator | null = null;

  return ({ params, body: sent }, context) => {
    shape ??= Compile(schema);
    let body = withWholeNumbers(sent, wholeNumbers);
    if (!shape.Check(body)) body = withoutNulls(body, members);
    const errors = shape.Check(body) ? [] : shape.Errors(body).flatMap(describe);
    const refusal = firstRefusal(entries, body, errors, context);
    if (refusal !== null) return refused(refusal);
    if (errors.length > 0) return refused('request_validation_failed', { errors });
    const value: { [name: string]: unknown } = { ...params };
    for (const [name, { otherwise }] of entries) value[name] = body[name] ?? otherwise;
    return { ok: true, value: value as Given };
  };
}

/** Reads a body by its own function. */
export function ownReader<Given>(
  read: (body: JsonObject, context: ReadContext) => object,
): Reader<Given> {
  return ({ params, body }, context) => {
    try {
      return { ok: true, value: { ...params, ...read(body, context) } as Given };
    } catch (cause) {
      if (!(cause instanceof Refusal)) throw cause;
      return refused(cause.refusal, cause.details);
    }
  };
}

function firstRefusal(
  entries: readonly (readonly [string, Member])[],
  body: JsonObject,
  errors: readonly FieldError[],
  context: ReadContext,
): RefusalName | null {
  const failed = (checks: readonly BodyCheck[] = []) =>
    checks.find(({ passes }) => !passes(body, context))?.refusal;
  for (const [name, { refusal, checks }] of entries) {
    const isWrong = refusal !== null && errors.some(({ loc }) => loc[1] === name);
    const found = failed(checks.before) ?? (isWrong ? refusal : failed(checks.after));
    if (found !== undefined) return found;
  }
  return null;
}

/** Null counts as absent for optional members [core-4-1]. */
function withoutNulls(body: JsonObject, members: Body): JsonObject {
  const isLeftOut = (name: string) => body[name] === null && members[name]?.isRequired === false;
  return Object.fromEntries(Object.entries(body).filter(([name]) => !isLeftOut(name)));
}

function withWholeNumbers(body: JsonObject, fields: readonly string[]): JsonObject {
  if (fields.length === 0) return body;
  const copy: { [name: string]: JsonValue } = { ...body };
  for (const field of fields) {
    const value = body[field];
    if (value !== undefined) copy[field] = wholeNumber(value);
  }
  return copy;
}

/** An integer beyond the safe range exceeds every limit, so it is read as the largest safe integer. */
function wholeNumber(value: JsonValue): JsonValue {
  if (typeof value === 'string' && /^[0-9]{1,40}$/.test(value)) return capped(Number(value));
  if (typeof value === 'bigint' && value > 0n) return Number.MAX_SAFE_INTEGER;
  if (value instanceof JsonFloat && Number.isInteger(value.value)) return capped(value.value);
  return value;
}

function capped(value: number): number {
  return Math.min(value, Number.MAX_SAFE_INTEGER);
}

interface FieldError {
  readonly [name: string]: JsonValue;
  readonly loc: readonly string[];
  readonly msg: string;
  readonly type: string;
}

function describe(error: {
  keyword: string;
  instancePath: string;
  message: string;
  params: object;
}): FieldError[] {
  const at = ['body', ...error.instancePath.split('/').slice(1)];
  if ('requiredProperties' in error.params) {
    const missing = error.params.requiredProperties as readonly string[];
    return missing.map((name) => ({ loc: [...at, name], msg: 'is required', type: 'missing' }));
  }
  return [{ loc: at, msg: error.message, type: error.keyword }];
}

/** Reads the parameters of a query; an empty one counts as absent [core-4-1]. */
export function queryReader<Given>(parameters: Query): Reader<Given> {
  const entries = Object.entries(parameters);
  return ({ params, query }) => {
    const value: { [name: string]: unknown } = { ...params };
    for (const [name, { read, refusal }] of entries) {
      const found = read((query[name] ?? []).filter((text) => text !== ''));
      if (found === undefined) return refused(refusal ?? 'bad_request');
      value[name] = found;
    }
    return { ok: true, value: value as Given };
  };
}
