import { parse } from 'node:querystring';
import { Refusal } from '../base/refusal.ts';

export type Query = { readonly [name: string]: readonly string[] };

/**
 * No route has more than a few parameters, but every parameter sent is decoded and becomes part of the signed payload.
 */
const MAX_PARAMETERS = 100;

/**
 * Maps each parameter to its values in the order sent; `+` is a space, and empty values are kept [core-2-2]. Bytes that
 * cannot be decoded are kept as is.
 */
export function parseQuery(text: string): Query {
  const parsed = parse(text, '&', '=', { maxKeys: MAX_PARAMETERS + 1 });
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

/** The first value of a parameter; null if it is absent or empty [core-4-1]. */
export function firstValue(query: Query, name: string): string | null {
  return query[name]?.[0] || null;
}
