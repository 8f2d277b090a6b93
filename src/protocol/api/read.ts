/** Reads requests as declared. */
import type { TObject } from 'typebox';
import type { JsonObject } from '../../base/json/value.ts';
import { Refusal, type RefusalName } from '../refusals.ts';
import { type FieldError, fitting } from './fit.ts';
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
      const texts = textsOf(name);
      const found = read(texts.length > 0 || alias === undefined ? texts : textsOf(alias));
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
