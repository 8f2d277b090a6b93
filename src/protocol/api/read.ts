/** Reads requests as declared. */
import Type, { type TObject } from 'typebox';
import { Compile, type Validator } from 'typebox/compile';
import { JsonFloat, type JsonObject, type JsonValue } from '../../base/json/value.ts';
import { Refusal, type RefusalName } from '../refusals.ts';
import type { Body, BodyCheck, Member, ReadContext } from './members.ts';
import type { Query } from './parameters.ts';

/** What was read of a request: the input of its handler, or why there is none. */

/** An operator learns of a refusal only once admitted, so it is passed on like an input. */
export type Input<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly refusal: RefusalName; readonly details: JsonObject };

export function refused(refusal: RefusalName, details: JsonObject = {}): Input<never> {
  return { ok: false, refusal, details };
}

/** Maps an input; a refusal is returned unchanged. */
export function mapped<From, To>(input: Input<From>, map: (value: From) => To): Input<To> {
  return input.ok ? { ok: true, value: map(input.value) } : input;
}

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
  const fit = fitting(schema, wholeNumbers);

  return ({ params, body: sent }, context) => {
    const { body, errors } = fit(sent);
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
  return ({ params, body }, context) =>
    derived(() => ({ ...params, ...read(body, context) }) as Given);
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

/** Reads the parameters of a query; an empty one counts as absent [core-4-1]. */
export function queryReader<Given, Parameters>(
  parameters: Query,
  derive?: (given: Parameters, context: ReadContext) => object,
): Reader<Given> {
  const entries = Object.entries(parameters);
  return ({ params, query }, context) => {
    const textsOf = (name: string) => query[name]?.filter((text) => text !== '') ?? [];
    const given: { [name: string]: unknown } = {};
    for (const [name, { read, refusal, alias }] of entries) {
      const named = textsOf(name);
      const aliased = alias === undefined || named.length > 0 ? [] : textsOf(alias);
      if (aliased.length > 1) return refused('repeated_parameter', { parameter: alias ?? name });
      const found = read([...named, ...aliased]);
      if (found === undefined) return refused(refusal ?? 'bad_request');
      given[name] = found;
    }
    if (derive === undefined) return { ok: true, value: { ...params, ...given } as Given };
    return derived(() => ({ ...params, ...derive(given as Parameters, context) }) as Given);
  };
}

function derived<Given>(derive: () => Given): Input<Given> {
  try {
    return { ok: true, value: derive() };
  } catch (cause) {
    if (!(cause instanceof Refusal)) throw cause;
    return refused(cause.refusal, cause.details);
  }
}

/** Fits bodies to their schemas, and says where they do not fit. */

interface FieldError {
  readonly [name: string]: JsonValue;
  readonly loc: readonly string[];
  readonly msg: string;
  readonly type: string;
}

interface Fitted {
  /** Without what counts as absent, and with whole numbers as such. */
  readonly body: JsonObject;
  /** Empty if it fits. */
  readonly errors: readonly FieldError[];
}

const NONE: readonly FieldError[] = [];

/** A schema is compiled for its first body: all of them would delay the start. `wholeNumbers` are lenient [core-4-1]. */
function fitting(schema: TObject, wholeNumbers: readonly string[]): (sent: JsonObject) => Fitted {
  let shape: Validator | null = null;
  return (sent) => {
    shape ??= Compile(schema);
    let body = withWholeNumbers(sent, wholeNumbers);
    if (shape.Check(body)) return { body, errors: NONE };
    body = withoutNulls(body, schema);
    return { body, errors: shape.Check(body) ? NONE : shape.Errors(body).flatMap(describe) };
  };
}

/** Null counts as absent for optional members [core-4-1]. */
function withoutNulls(body: JsonObject, { properties }: TObject): JsonObject {
  const isLeftOut = (name: string) => {
    const member = properties[name];
    return body[name] === null && member !== undefined && Type.IsOptional(member);
  };
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
