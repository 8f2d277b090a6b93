/**
 * The recognition graph in memory. It is updated as treaties and imported revocations are committed, so that paths and
 * the graph can be read at any time. It only follows commits, and does not decide anything.
 */
import type { Treaty } from '../../../machines/recognition-treaty.ts';
import { compareCodePoints } from '../../base/json/write.ts';
import { insertInOrder } from '../../base/ordered-list.ts';

/** One treaty as an edge from its issuer to its subject. */
export interface Edge {
  readonly treatyId: string;
  readonly from: Sovereign;
  readonly to: Sovereign;
  readonly treaty: Treaty;
}

export interface Sovereign {
  readonly id: string;
  /** Sovereigns are numbered from 0 in order of arrival, so that callers can store results in arrays. */
  readonly number: number;
  /** Sorted by subject, then treaty id: the order in which a path search tries them. */
  readonly outgoing: readonly Edge[];
  readonly incoming: readonly Edge[];
}

/** The mutable form, used only by the index. */
interface GrowingSovereign extends Sovereign {
  readonly outgoing: Edge[];
  readonly incoming: Edge[];
}

interface GrowingEdge extends Edge {
  treaty: Treaty;
}

export type RecognitionIndex = ReturnType<typeof createRecognitionIndex>;

/** The state of one import. */
export interface ImportedBy {
  readonly issuer: string;
  readonly feedId: string;
  /** Decimal digits. */
  readonly sequence: string;
  /** The time of the import, in milliseconds since the epoch. */
  readonly revokedAt: number;
}

export interface ImportLayer extends ImportedBy {
  readonly order: bigint;
  /** Whether the import has ended. */
  isVisible: boolean;
  /** The number of ids that no later import has named. */
  owned: number;
  /** The number of ids that no earlier import has named. */
  added: number;
}

/** One attestation that was revoked by imported feeds, according to the newest of these feeds. */
export interface RevokedRow {
  readonly id: string;
  reason: string | null;
  layer: ImportLayer;
  /** The import that first revoked it. */
  readonly since: ImportLayer;
}

interface IssuerRevocations {
  readonly rows: Map<string, RevokedRow>;
  /** Null if the rows must be sorted again. */
  sorted: readonly RevokedRow[] | null;
}

export function createRecognitionIndex() {
  const sovereigns = new Map<string, GrowingSovereign>();
  const byTreaty = new Map<string, GrowingEdge>();
  const imported = new Map<string, IssuerRevocations>();
  let revocationCount = 0;
  const byAge: Edge[] = [];
  const byParties: Edge[] = [];
  const sovereignsById: Sovereign[] = [];
  let version = 0;
  /** While the state is read, items are appended; then they are sorted once. */
  let isLoading = true;

  /** Later items are inserted in order, because sorting thousands of them takes longer than a request may. */
  function place<Item>(list: Item[], item: Item, compare: (a: Item, b: Item) => number): void {
    if (isLoading) list.push(item);
    else insertInOrder(list, item, compare);
  }

  function endLoading(): void {
    isLoading = false;
    byAge.sort(compareAge);
    byParties.sort(compareEdges);
    sovereignsById.sort(compareIds);
    for (const { outgoing, incoming } of sovereigns.values()) {
      outgoing.sort(compareEdges);
      incoming.sort(compareEdges);
    }
  }

  function sovereign(id: string): GrowingSovereign {
    const known = sovereigns.get(id);
    if (known !== undefined) return known;
    const created = { id, number: sovereigns.size, outgoing: [], incoming: [] };
    sovereigns.set(id, created);
    place<Sovereign>(sovereignsById, created, compareIds);
    return created;
  }

  function importedOf(issuer: string): IssuerRevocations {
    const known = imported.get(issuer) ?? { rows: new Map(), sorted: [] };
    imported.set(issuer, known);
    return known;
  }

  function beginImport({ issuer, feedId, sequence, revokedAt }: ImportedBy): ImportLayer {
    const order = BigInt(sequence);
    return { issuer, feedId, sequence, revokedAt, order, isVisible: false, owned: 0, added: 0 };
  }

  function absorb(layer: ImportLayer, rows: readonly (readonly [string, string | null])[]): void {
    const ofIssuer = importedOf(layer.issuer);
    for (const [id, reason] of rows) {
      const known = ofIssuer.rows.get(id);
      if (known === undefined) {
        ofIssuer.rows.set(id, { id, reason, layer, since: layer });
        layer.owned += 1;
        layer.added += 1;
      } else if (layer.order >= known.layer.order) {
        known.layer.owned -= 1;
        layer.owned += 1;
        known.layer = layer;
        known.reason = reason;
      }
    }
  }

  function endImport(layer: ImportLayer): void {
    layer.isVisible = true;
    importedOf(layer.issuer).sorted = null;
    revocationCount += layer.added;
    version += 1;
  }

  function revokedBy(issuer: string): readonly RevokedRow[] {
    const ofIssuer = imported.get(issuer);
    if (ofIssuer === undefined) return [];
    ofIssuer.sorted ??= [...ofIssuer.rows.values()]
      .filter(({ since }) => since.isVisible)
      .sort((a, b) => compareCodePoints(a.id, b.id));
    return ofIssuer.sorted;
  }

  return {
    /** Begins an import; none of its ids count as revoked until it ends. */
    beginImport,
    absorb,
    endImport,
    /** The imported revocations of an issuer, sorted by attestation id. */
    revokedBy,
    /** Whether an imported feed of the issuer has revoked the attestation. */
    isRevoked: (issuer: string, id: string) =>
      imported.get(issuer)?.rows.get(id)?.since.isVisible ?? false,
    /** Issuers of imported feeds, sorted. */
    revokingIssuers: (): readonly string[] => sortedKeys(imported),
    /** The number of imported revocations. */
    revocationCount: () => revocationCount,
    putTreaty(treatyId: string, treaty: Treaty) {
      version += 1;
      const known = byTreaty.get(treatyId);
      if (known !== undefined) {
        known.treaty = treaty;
        return;
      }
      const from = sovereign(treaty.issuer);
      const to = sovereign(treaty.subject);
      const edge = { treatyId, from, to, treaty };
      byTreaty.set(treatyId, edge);
      place(from.outgoing, edge, compareEdges);
      place(to.incoming, edge, compareEdges);
      place(byAge, edge, compareAge);
      place(byParties, edge, compareEdges);
    },
    /** Sorts the treaties that were loaded from the store. Call before they are read. */
    endLoading,
    sovereign: (id: string): Sovereign | undefined => sovereigns.get(id),
    /** Every sovereign that is the issuer or the subject of a treaty, sorted by id. */
    sovereigns: (): readonly Sovereign[] => sovereignsById,
    sovereignCount: () => sovereigns.size,
    /** Every treaty, oldest first. */
    edges: (): readonly Edge[] => byAge,
    /** Every treaty, sorted by issuer, subject and treaty id. */
    edgesByParties: (): readonly Edge[] => byParties,
    edge: (treatyId: string): Edge | undefined => byTreaty.get(treatyId),
    /** Increases with every change. */
    version: () => version,
  };
}

/** Orders edges by issuer, subject and treaty id. */
export function compareEdges(a: Edge, b: Edge): number {
  return (
    compareCodePoints(a.from.id, b.from.id) ||
    compareCodePoints(a.to.id, b.to.id) ||
    compareCodePoints(a.treatyId, b.treatyId)
  );
}

function compareIds(a: Sovereign, b: Sovereign): number {
  return compareCodePoints(a.id, b.id);
}

function compareAge(a: Edge, b: Edge): number {
  return a.treaty.issuedAt - b.treaty.issuedAt || compareCodePoints(a.treatyId, b.treatyId);
}

function sortedKeys(map: ReadonlyMap<string, unknown>): string[] {
  return [...map.keys()].sort(compareCodePoints);
}
