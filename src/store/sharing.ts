/** Interns short texts, and lists of them, that recur in most loaded rows. */

/** Long enough for roles and addresses, too short for keys and hashes, which rarely recur. */
const LONGEST = 40;
/** Unique texts must not use up the memory that sharing is meant to save. */
const AT_MOST = 10_000;

/**
 * Returns an equal value seen before, or the value itself. `place` is the number of the member that the
 * value comes from: its previous value is compared first, since most rows are alike.
 */
export type Share = <T>(value: T, place: number) => T;

export function createSharing(atMost = AT_MOST): Share {
  const texts = new Map<string, string>();
  const lists = new Map<string, readonly unknown[]>();
  const last: unknown[] = [];

  function share(value: unknown, place: number): unknown {
    if (typeof value === 'string') {
      if (value.length > LONGEST) return value;
      const before = last[place];
      if (value === before) return before;
      const text = remember(texts, value, value, atMost);
      last[place] = text;
      return text;
    }
    return Array.isArray(value) ? shareList(value, place) : value;
  }

  function shareList(list: readonly unknown[], place: number): readonly unknown[] {
    const before = last[place];
    if (Array.isArray(before) && isSame(before, list)) return before;
    if (!list.every((item) => typeof item === 'string')) return list;
    const key = list.length === 1 ? String(list[0]) : list.join('\n');
    if (key.length > LONGEST) return list;
    const known = remember(lists, key, list, atMost);
    if (!isSame(known, list)) return list;
    last[place] = known;
    return known;
  }

  return share as Share;
}

function remember<T>(known: Map<string, T>, key: string, value: T, atMost: number): T {
  const first = known.get(key);
  if (first !== undefined) return first;
  if (known.size < atMost) known.set(key, value);
  return value;
}

/** Two lists may have the same key, because an item may contain the separator. */
function isSame(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((item, index) => item === b[index]);
}
