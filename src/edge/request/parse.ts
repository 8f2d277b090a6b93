/** What a request carries: its query, and its body, as it arrives and as a JSON object. */
import { parse } from 'node:querystring';
import Type from 'typebox';
import { parseJsonBytes } from '../../base/json/bytes.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json/value.ts';
import { Refusal } from '../../protocol/refusals.ts';
import type { RouteDescription } from '../../protocol/route-description.ts';

export type Query = { readonly [name: string]: readonly string[] };

/**
 * No route has more than a few parameters, but every parameter sent is decoded and becomes part of the signed payload.
 */
const MAX_PARAMETERS = 100;

/**
 * Maps each parameter to its values in the order sent; `+` is a space, and empty values are kept [core-2-2]. What cannot
 * be decoded becomes U+FFFD, and a `%` that begins no escape is kept.
 */
export function parseQuery(text: string): Query {
  // Without a limit of its own, which would also count what is empty between two `&`: what follows would be ignored.
  const parsed = parse(text, '&', '=', { maxKeys: 0 });
  const query: { [name: string]: string[] } = Object.create(null);
  let count = 0;
  for (const [name, value = []] of Object.entries(parsed)) {
    const values = typeof value === 'string' ? [value] : value;
    query[name] = values;
    count += values.length;
  }
  if (count > MAX_PARAMETERS) throw new Refusal('too_many_parameters');
  return query;
}

/** The query of a request to a route. One of two values of a filter would silently win over the other. */
export function queryOf(text: string, { query: declared }: Pick<RouteDescription, 'query'>): Query {
  const query = parseQuery(text);
  for (const [name, parameter] of Object.entries(declared?.properties ?? {})) {
    if (Type.IsArray(parameter) || valuesOf(query, name).length <= 1) continue;
    throw new Refusal('repeated_parameter', { parameter: name });
  }
  return query;
}

/** The only value of a parameter; null if it is absent or empty [core-4-1]. */
export function firstValue(query: Query, name: string): string | null {
  return valuesOf(query, name)[0] ?? null;
}

/** The values of a parameter that may be repeated; empty ones count as absent. */
function valuesOf(query: Query, name: string): readonly string[] {
  return query[name]?.filter((value) => value !== '') ?? [];
}

export type ReceivedBody =
  | Uint8Array
  /** The body exceeded the limit of its route. */
  | 'too_large'
  /** The body was dropped before its end. */
  | 'dropped'
  /** A proxy may have read a different length. */
  | 'ambiguous';

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
