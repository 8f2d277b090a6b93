import type { Edge } from './edge.ts';

/** Clients choose the host name they send: more than a few differing ones are made up. */
const MOST_BASE_URLS = 8;

/** The key of what does not depend on the base URL. */
export const ANY_URL = '';

/** Computes a value once per edge and base URL; drops the oldest when there are too many. */
export function cachedByBaseUrl<Made>(
  make: (edge: Edge, baseUrl: string) => Made,
): (edge: Edge, baseUrl: string) => Made {
  const keptByEdge = new WeakMap<Edge, Map<string, Made>>();
  return (edge, baseUrl) => {
    const kept = keptByEdge.get(edge) ?? new Map<string, Made>();
    keptByEdge.set(edge, kept);
    const known = kept.get(baseUrl);
    if (known !== undefined) return known;
    const made = make(edge, baseUrl);
    for (const oldest of kept.keys()) {
      if (kept.size < MOST_BASE_URLS) break;
      kept.delete(oldest);
    }
    kept.set(baseUrl, made);
    return made;
  };
}
