/** Copies of strings that are kept for long, so that they do not retain the text they were sliced from. */

/** V8 copies substrings shorter than this instead of referencing the parent string. */
const SHORTEST_REFERENCE = 13;

/**
 * The same text in its own memory. A slice of a longer text, such as a member of a parsed body, keeps that whole body
 * in memory for as long as it lives, and a concatenation keeps each of its parts.
 */
export function detached(text: string): string {
  return text.length < SHORTEST_REFERENCE ? text : Buffer.from(text).toString();
}
