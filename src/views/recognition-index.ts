/**
 * The recognition graph in memory, kept as treaties and imported revocations are committed: whoever
 * asks for a path or the graph finds it ready. It only follows; it decides nothing.
 */
import type { Treaty } from '../../machines/recognition-treaty.ts';
import type { ImportedRevocation } from '../../machines/revocation-feed.ts';
import { compareCodePoints } from '../json/write.ts';

/** One treaty as an edge from its issuer to its subject. */
export interface Edge {
  readonly treatyId: string;
  readonly from: Sovereign;
  readonly to: Sovereign;
  treaty: Treaty;
}

export interface Sovereign {
  readonly id: string;
  /** Sorted by subject, then treaty id: the order in which a path search tries them. */
  readonly outgoing: Edge[];
  readonly incoming: Edge[];
  /** Where the path search that came here last found it; looking this up must cost nothing. */
  readonly fromSource: Mark;
  readonly toTarget: Mark;
}

/** Distance from one end of a path search, valid for that search only. */
export interface Mark {
  search: number;
  distance: number;
}

export interface RecognitionIndex {
  putTreaty(treatyId: string, treaty: Treaty): void;
  putRevocation(revocation: ImportedRevocation): void;
  sovereign(id: string): Sovereign | undefined;
  /** Every sovereign that is issuer or subject of a treaty. */
  sovereigns(): Iterable<Sovereign>;
  /** Every treaty, oldest first. */
  edges(): readonly Edge[];
  edge(treatyId: string): Edge | undefined;
  /** Revocations imported from the issuer, by attestation id. */
  revocationsOf(issuer: string): ReadonlyMap<string, ImportedRevocation>;
  /** All imported revocations, by issuer and attestation id. */
  revocations(): ImportedRevocation[];
  /** Rises with every change. */
  version(): number;
}

const NONE: ReadonlyMap<string, ImportedRevocation> = new Map();

export function createRecognitionIndex(): RecognitionIndex {
  const sovereigns = new Map<string, Sovereign>();
  const byTreaty = new Map<string, Edge>();
  const imported = new Map<string, Map<string, ImportedRevocation>>();
  const inOrder: Edge[] = [];
  let version = 0;

  function sovereign(id: string): Sovereign {
    const known = sovereigns.get(id);
    if (known !== undefined) return known;
    const created: Sovereign = {
      id,
      outgoing: [],
      incoming: [],
      fromSource: { search: 0, distance: 0 },
      toTarget: { search: 0, distance: 0 },
    };
    sovereigns.set(id, created);
    return created;
  }

  return {
    putTreaty(treatyId, treaty) {
      version += 1;
      const known = byTreaty.get(treatyId);
      if (known !== undefined) {
        known.treaty = treaty;
        return;
      }
      const edge = {
        treatyId,
        from: sovereign(treaty.issuer),
        to: sovereign(treaty.subject),
        treaty,
      };
      byTreaty.set(treatyId, edge);
      insert(edge.from.outgoing, edge, compareEdges);
      insert(edge.to.incoming, edge, compareEdges);
      insert(inOrder, edge, compareAge);
    },
    putRevocation(revocation) {
      version += 1;
      const ofIssuer = imported.get(revocation.issuer) ?? new Map<string, ImportedRevocation>();
      imported.set(revocation.issuer, ofIssuer.set(revocation.attestationId, revocation));
    },
    sovereign: (id) => sovereigns.get(id),
    sovereigns: () => sovereigns.values(),
    edges: () => inOrder,
    edge: (treatyId) => byTreaty.get(treatyId),
    revocationsOf: (issuer) => imported.get(issuer) ?? NONE,
    revocations: () =>
      sortedKeys(imported).flatMap((issuer) => {
        const ofIssuer = imported.get(issuer) ?? NONE;
        return sortedKeys(ofIssuer).flatMap((id) => ofIssuer.get(id) ?? []);
      }),
    version: () => version,
  };
}

/** By issuer, subject and treaty id. */
export function compareEdges(a: Edge, b: Edge): number {
  return (
    compareCodePoints(a.from.id, b.from.id) ||
    compareCodePoints(a.to.id, b.to.id) ||
    compareCodePoints(a.treatyId, b.treatyId)
  );
}

function compareAge(a: Edge, b: Edge): number {
  return a.treaty.issuedAt - b.treaty.issuedAt || compareCodePoints(a.treatyId, b.treatyId);
}

/** Inserts into a sorted list; new treaties mostly belong at its end. */
function insert(edges: Edge[], edge: Edge, compare: (a: Edge, b: Edge) => number): void {
  let low = 0;
  let high = edges.length;
  const last = edges[high - 1];
  if (last !== undefined && compare(last, edge) <= 0) low = high;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compare(edges[middle] as Edge, edge) <= 0) low = middle + 1;
    else high = middle;
  }
  edges.splice(low, 0, edge);
}

function sortedKeys(map: ReadonlyMap<string, unknown>): string[] {
  return [...map.keys()].sort(compareCodePoints);
}
