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

/** The path that routes are matched on: unreserved characters mean the same encoded or not [core-4-1]. */
export function matchedPath(path: string): string {
  if (!path.includes('%')) return path;
  return path.replace(UNRESERVED, (encoded) => decodeURIComponent(encoded));
}

/** A letter, a digit, `-`, `.`, `_` or `~`, percent-encoded. */
const UNRESERVED = /%(?:2[DE]|3[0-9]|[46][1-9A-F]|[57][0-9A]|5F|7E)/gi;

/** The request path as it is signed: percent-decoded UTF-8; null when it cannot be decoded. */
export function decodePath(path: string): string | null {
  if (!path.includes('%')) return path;
  try {
    return decodeURIComponent(path);
  } catch {
    return null;
  }
}
