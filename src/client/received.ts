import { parseJson } from '../base/json/parse.ts';

/** JSON text, or the result of `parseJson`. */
export type Received = unknown;

/** The parsed value; null if it is not JSON. */
export function parsed(received: Received): unknown {
  if (typeof received !== 'string') return received;
  try {
    return parseJson(received);
  } catch {
    return null;
  }
}
