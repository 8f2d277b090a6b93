import { isJsonObject, type JsonValue } from '../json/value.ts';

/**
 * Caller-supplied public keys (wire rules 1.5, G26): a list of strings, or an object of strings whose
 * names are labels; null for anything else. Whether an entry is a key shows when it is tried.
 */
export function keyList(given: JsonValue): readonly string[] | null {
  const keys = isJsonObject(given) ? Object.values(given) : given;
  if (!Array.isArray(keys)) return null;
  return keys.every((key) => typeof key === 'string') ? keys : null;
}
