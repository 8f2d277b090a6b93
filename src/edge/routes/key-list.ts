import { isJsonObject, type JsonValue } from '../../base/json/value.ts';
import type { CandidateKeys } from '../../protocol/records/signature-search.ts';

/**
 * Caller-supplied public keys [core-1-5], [core-g26]: a list of strings, or an object of strings whose
 * names are their ids; null for anything else. Whether an entry is a valid key shows when it is tried.
 */
export function keyList(given: JsonValue): CandidateKeys | null {
  if (isJsonObject(given)) {
    const entries = Object.entries(given);
    return entries.every(isTextEntry) ? new Map(entries) : null;
  }
  if (!Array.isArray(given)) return null;
  return given.every((key) => typeof key === 'string') ? given : null;
}

function isTextEntry(entry: [string, JsonValue]): entry is [string, string] {
  return typeof entry[1] === 'string';
}
