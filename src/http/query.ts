import { unescape as percentDecode } from 'node:querystring';

export type Query = { readonly [name: string]: readonly string[] };

/** Each parameter to its values in the order sent; `+` is a blank and blank values are kept (2.2). */
export function parseQuery(text: string): Query {
  const query: { [name: string]: string[] } = Object.create(null);
  for (const part of text.split('&')) {
    if (part === '') continue;
    const split = part.indexOf('=');
    const name = decode(split === -1 ? part : part.slice(0, split));
    const values = query[name] ?? [];
    query[name] = values;
    values.push(split === -1 ? '' : decode(part.slice(split + 1)));
  }
  return query;
}

/** The first value of a parameter; null when it was not sent. */
export function firstValue(query: Query, name: string): string | null {
  return query[name]?.[0] ?? null;
}

function decode(text: string): string {
  return percentDecode(text.replaceAll('+', ' '));
}

/** The request path as it is signed: percent-decoded UTF-8; null when it cannot be decoded. */
export function decodePath(path: string): string | null {
  if (!path.includes('%')) return path;
  try {
    return decodeURIComponent(path);
  } catch {
    return null;
  }
}
