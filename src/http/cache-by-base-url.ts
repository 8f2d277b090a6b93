import type { Edge } from './edge.ts';

/** Clients choose the host they name: more than a few are the work of somebody who makes them up. */
const MOST_BASE_URLS = 8;

/** Makes something once for each edge and base URL, and forgets the oldest when there are many. */
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
