import { parse } from 'node:querystring';
import { Refusal } from '../base/refusal.ts';

export type Query = { readonly [name: string]: readonly string[] };

/**
 * No route has more than a few parameters, but each one sent is decoded and becomes part of the signed
 * payload.
 */
const MAX_PARAMETERS = 100;

/**
 * Each parameter to its values in the order sent; `+` is a blank and blank values are kept [core-2-2].
 * Bytes that cannot be decoded are kept as they are.
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

/** The first value of a parameter; null when it was not sent, or sent empty [core-4-1]. */
export function firstValue(query: Query, name: string): string | null {
  return query[name]?.[0] || null;
}
