/** Texts that are kept: they must not hold what they were cut out of. */

/** V8 makes no reference to another text for less. */
const SHORTEST_REFERENCE = 13;

/**
 * The same text in memory of its own. One that was cut out of a longer text, such as a member of a parsed body, keeps
 * all of that body in memory for as long as it lives, and one that was put together keeps each of its parts.
 */
export function detached(text: string): string {
  return text.length < SHORTEST_REFERENCE ? text : Buffer.from(text).toString();
}
