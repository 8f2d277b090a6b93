/**
 * The recognition graph as served [core-6-2], and the counts derived from it [core-6-3], [core-6-4]. Records are stored
 * as canonical text, so the graph is also canonical text, and its digest is the digest of its bytes.
 */
import TinyQueue from 'tinyqueue';
import { canonicalJson, compareCodePoints } from '../../base/json/write.ts';
import { formatInstant } from '../../base/timestamp.ts';
import type {
  ConnectomeSummary,
  EdgeRow,
  RevokedTreaty,
  SovereignRow,
} from '../../protocol/rows/graph.ts';
import { isLifecycleActive, lifecycleOf, nextLifecycleChange } from './lifecycle.ts';
import type { Edge, ImportLayer, RecognitionIndex, RevokedRow } from './recognition-index.ts';

export function edgeRow({ treatyId, from, to, treaty }: Edge, now: number): EdgeRow {
  const { state, expiry_risk, expires_at } = lifecycleOf(treaty, now);
  const followed = treaty.followed.at(-1);
  return {
    from: from.id,
    to: to.id,
    treaty_id: treatyId,
    status: treaty.revokedAt === null ? 'active' : 'revoked',
    lifecycle_state: state,
    expiry_risk,
    valid_from: treaty.validFrom,
    expires_at,
    ...(followed !== undefined && { followed_key: followed.to_key }),
  };
}

/** The canonical text of the graph. */
export function recognitionGraph(index: RecognitionIndex, now: number): string {
  return [...recognitionGraphText(index, now)].join('');
}

/** The canonical text of the graph in pieces; valid only while the index does not change. */
export function* recognitionGraphText(index: RecognitionIndex, now: number): Generator<string> {
  const edges = index.edges();
  yield '{"active_treaties":[';
  yield* joined(activeTreaties(edges, now), ({ treaty }) => treaty.json);
  yield '],"recognition_edges":[';
  yield* joined(edges, (edge) => canonicalJson(edgeRow(edge, now)));
  yield '],"revoked_trust_material":[';
  const treaties = edges.filter(isRevoked);
  yield* joined(treaties, (edge) => treatyMaterial(edge, now));
  if (treaties.length > 0 && index.revocationCount() > 0) yield ',';
  yield* joined(byIssuer(index), importedText());
  yield ']';
  yield* sovereignRows(index);
  yield '}';
}

/** The canonical text of the Connectome: the sorted graph, its counts, and what each revocation affects. */
export function* connectomeText(index: RecognitionIndex, now: number): Generator<string> {
  const edges = index.edgesByParties();
  yield '{"active_treaties":[';
  yield* joined(activeTreaties(index.edges(), now), ({ treaty }) => treaty.json);
  yield '],"recognition_edges":[';
  yield* joined(edges, (edge) => canonicalJson(edgeRow(edge, now)));
  yield '],"revocation_blast_radius":[';
  const affected = new Map(
    index.revokingIssuers().map((issuer) => {
      const names = canonicalJson(acceptingSovereigns(index, issuer, now));
      return [issuer, `"affected_accepting_sovereigns":${names},`];
    }),
  );
  yield* joined(
    byId(index),
    importedText(({ issuer }) => affected.get(issuer) ?? ''),
  );
  yield '],"revoked_trust_material":[';
  yield* joined(byId(index), importedText());
  const treaties = edges
    .filter(isRevoked)
    .sort((a, b) => compareCodePoints(a.treatyId, b.treatyId));
  if (treaties.length > 0 && index.revocationCount() > 0) yield ',';
  yield* joined(treaties, (edge) => treatyMaterial(edge, now));
  yield ']';
  yield* sovereignRows(index);
  yield `,"summary":${canonicalJson(connectomeSummary(index, now))}}`;
}

export function connectomeSummary(index: RecognitionIndex, now: number): ConnectomeSummary {
  const edges = index.edges();
  const revoked = edges.filter(isRevoked).length;
  const imported = index.revocationCount();
  return {
    sovereign_count: index.sovereignCount(),
    recognition_edge_count: edges.length,
    active_edge_count: edges.filter(({ treaty }) => isLifecycleActive(treaty, now)).length,
    revoked_edge_count: revoked,
    revoked_trust_material_count: revoked + imported,
    imported_revocation_count: imported,
  };
}

/** The canonical text of the atlas summary; `graphDigest` is the digest of the graph as served. */
export function* atlasText(
  index: RecognitionIndex,
  now: number,
  graphDigest: string,
): Generator<string> {
  const summary = connectomeSummary(index, now);
  yield `{"active_treaty_count":${summary.active_edge_count}`;
  yield `,"graph_digest":${canonicalJson(graphDigest)},"recognition_edges":[`;
  yield* joined(index.edges(), (edge) => canonicalJson(edgeRow(edge, now)));
  yield `],"revoked_trust_material_count":${summary.revoked_trust_material_count}`;
  yield* sovereignRows(index);
  yield '}';
}

/** When the graph next changes merely because time passes. */
export function nextGraphChange(index: RecognitionIndex, now: number): number {
  let next = Number.POSITIVE_INFINITY;
  for (const { treaty } of index.edges()) next = Math.min(next, nextLifecycleChange(treaty, now));
  return next;
}

/** The `sovereigns` member, with the comma before it. */
function* sovereignRows(index: RecognitionIndex): Generator<string> {
  yield ',"sovereigns":[';
  yield* joined(index.sovereigns(), ({ id }) => {
    const row: SovereignRow = { sovereign_id: id };
    return canonicalJson(row);
  });
  yield ']';
}

function activeTreaties(edges: readonly Edge[], now: number): readonly Edge[] {
  return edges.filter(({ treaty }) => isLifecycleActive(treaty, now));
}

type RevokedEdge = Edge & { readonly treaty: { readonly revokedAt: number } };

function isRevoked(edge: Edge): edge is RevokedEdge {
  return edge.treaty.revokedAt !== null;
}

function treatyMaterial({ treatyId, treaty }: RevokedEdge, now: number): string {
  const { state, revocation_reason: reason } = lifecycleOf(treaty, now);
  const row: RevokedTreaty = {
    type: 'recognition_treaty',
    id: treatyId,
    lifecycle_state: state,
    reason,
    revoked_at: formatInstant(treaty.revokedAt),
  };
  return canonicalJson(row);
}

/**
 * Returns a function that renders attestations revoked by imported feeds. There may be hundreds of thousands, so the
 * members that all rows of an import have in common are rendered only once. `before` renders members that come first.
 */
function importedText(before: (layer: ImportLayer) => string = () => '') {
  const common = new Map<ImportLayer, readonly [string, string, string]>();
  return ({ id, reason, layer }: RevokedRow): string => {
    const known = common.get(layer) ?? commonText(layer, before(layer));
    common.set(layer, known);
    const [first, middle, last] = known;
    return first + canonicalJson(id) + middle + canonicalJson(reason) + last;
  };
}

function commonText(
  { feedId, issuer, revokedAt, sequence }: ImportLayer,
  before: string,
): readonly [string, string, string] {
  return [
    `{${before}"feed_id":${canonicalJson(feedId)},"id":`,
    `,"issuer_sovereign_id":${canonicalJson(issuer)},"reason":`,
    `,"revoked_at":${canonicalJson(formatInstant(revokedAt))},"sequence":${sequence}` +
      ',"type":"membership_attestation"}',
  ];
}

/** Imported revocations by issuer, then by attestation id. */
function* byIssuer(index: RecognitionIndex): Generator<RevokedRow> {
  for (const issuer of index.revokingIssuers()) yield* index.revokedBy(issuer);
}

/** Imported revocations by attestation id, then by issuer. */
function* byId(index: RecognitionIndex): Generator<RevokedRow> {
  const heads = index
    .revokingIssuers()
    .map((issuer, rank) => ({ rows: index.revokedBy(issuer), rank, at: 0 }))
    .filter(({ rows }) => rows.length > 0);
  const idAt = ({ rows, at }: (typeof heads)[number]) => rows[at]?.id ?? '';
  const queue = new TinyQueue(
    heads,
    (a, b) => compareCodePoints(idAt(a), idAt(b)) || a.rank - b.rank,
  );
  for (let head = queue.pop(); head !== undefined; head = queue.pop()) {
    const row = head.rows[head.at];
    if (row !== undefined) yield row;
    if (head.at + 1 < head.rows.length) queue.push({ ...head, at: head.at + 1 });
  }
}

function acceptingSovereigns(index: RecognitionIndex, issuer: string, now: number): string[] {
  const incoming = index.sovereign(issuer)?.incoming ?? [];
  const active = incoming.filter(({ treaty }) => isLifecycleActive(treaty, now));
  return [...new Set(active.map(({ from }) => from.id))].sort(compareCodePoints);
}

/** A sequence as a number of any size. */
export function sequenceValue(digits: string): number | bigint {
  const value = Number(digits);
  return Number.isSafeInteger(value) ? value : BigInt(digits);
}

const ROWS_PER_PIECE = 250;

/** The texts of the items, separated by commas, in pieces. */
function* joined<T>(items: Iterable<T>, text: (item: T) => string): Generator<string> {
  let piece: string[] = [];
  let isFirst = true;
  for (const item of items) {
    piece.push(text(item));
    if (piece.length < ROWS_PER_PIECE) continue;
    yield (isFirst ? '' : ',') + piece.join(',');
    isFirst = false;
    piece = [];
  }
  if (piece.length > 0) yield (isFirst ? '' : ',') + piece.join(',');
}
