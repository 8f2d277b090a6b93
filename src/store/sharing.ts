/** Short texts, and lists of them, that recur in most of what is loaded: kept once instead of a million times. */

/** Long enough for roles and addresses, too short for keys and hashes, which hardly recur. */
const LONGEST = 40;
/** Texts that are all different must not fill the memory they were to save. */
const AT_MOST = 10_000;

/** Returns a function that gives back an equal value it has seen before, or the value itself. */
export function createSharing(): <T>(value: T) => T {
  const texts = new Map<string, string>();
  const lists = new Map<string, readonly unknown[]>();

  function share(value: unknown): unknown {
    if (typeof value === 'string')
      return value.length > LONGEST ? value : remember(texts, value, value);
    return Array.isArray(value) ? shareList(value) : value;
  }

  function shareList(list: readonly unknown[]): readonly unknown[] {
    if (!list.every((item) => typeof item === 'string')) return list;
    const key = list.length === 1 ? String(list[0]) : list.join('\n');
    if (key.length > LONGEST) return list;
    const known = remember(lists, key, list);
    return isSame(known, list) ? known : list;
  }

  return share as <T>(value: T) => T;
}

function remember<T>(known: Map<string, T>, key: string, value: T): T {
  const first = known.get(key);
  if (first !== undefined) return first;
  if (known.size < AT_MOST) known.set(key, value);
  return value;
}

/** Two lists may have one key: an item can hold what joins them. */
function isSame(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((item, index) => item === b[index]);
}
