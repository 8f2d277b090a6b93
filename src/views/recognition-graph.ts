/**
 * The recognition graph as it is served (wire rules 6.2) and what is counted from it (6.3, 6.4). Records
 * are kept as canonical text, so the graph is canonical text too and its digest is that of its bytes.
 */
import type { ImportedRevocation } from '../../machines/revocation-feed.ts';
import type { JsonObject, JsonValue } from '../json/value.ts';
import { canonicalJson, compareCodePoints } from '../json/write.ts';
import { formatInstant } from '../timestamp.ts';
import {
  isLifecycleActive,
  type Lifecycle,
  lifecycleOf,
  nextLifecycleChange,
} from './lifecycle.ts';
import { compareEdges, type Edge, type RecognitionIndex } from './recognition-index.ts';

export type EdgeRow = {
  readonly from: string;
  readonly to: string;
  readonly treaty_id: string;
  readonly status: 'active' | 'revoked';
  readonly lifecycle_state: Lifecycle['state'];
  readonly expiry_risk: Lifecycle['expiry_risk'];
  readonly valid_from: string;
  readonly expires_at: string;
};

export function edgeRow({ treatyId, from, to, treaty }: Edge, now: number): EdgeRow {
  const { state, expiry_risk, expires_at } = lifecycleOf(treaty, now);
  return {
    from: from.id,
    to: to.id,
    treaty_id: treatyId,
    status: treaty.revokedAt === null ? 'active' : 'revoked',
    lifecycle_state: state,
    expiry_risk,
    valid_from: treaty.validFrom,
    expires_at,
  };
}

/** Canonical text of the whole graph. */
export function recognitionGraph(index: RecognitionIndex, now: number): string {
  const edges = index.edges();
  return (
    `{"active_treaties":${activeTreaties(edges, now)}` +
    `,"recognition_edges":${listOf(edges, (edge) => canonicalJson(edgeRow(edge, now)))}` +
    `,"revoked_trust_material":${canonicalJson(revokedMaterial(index, edges, now))}` +
    `,"sovereigns":${canonicalJson(sovereignRows(index))}}`
  );
}

/** Canonical text of the Connectome: the graph sorted, counted, and what each revocation touches. */
export function connectome(index: RecognitionIndex, now: number): string {
  const edges = [...index.edges()].sort(compareEdges);
  const material = revokedMaterial(index, edges, now).sort(compareMaterial);
  return (
    `{"active_treaties":${activeTreaties(index.edges(), now)}` +
    `,"recognition_edges":${listOf(edges, (edge) => canonicalJson(edgeRow(edge, now)))}` +
    `,"revocation_blast_radius":${canonicalJson(blastRadius(index, now))}` +
    `,"revoked_trust_material":${canonicalJson(material)}` +
    `,"sovereigns":${canonicalJson(sovereignRows(index))}` +
    `,"summary":${canonicalJson(connectomeSummary(index, now))}}`
  );
}

export function connectomeSummary(index: RecognitionIndex, now: number) {
  const edges = index.edges();
  const revoked = edges.filter(({ treaty }) => treaty.revokedAt !== null).length;
  const imported = index.revocations().length;
  return {
    sovereign_count: [...index.sovereigns()].length,
    recognition_edge_count: edges.length,
    active_edge_count: edges.filter(({ treaty }) => isLifecycleActive(treaty, now)).length,
    revoked_edge_count: revoked,
    revoked_trust_material_count: revoked + imported,
    imported_revocation_count: imported,
  };
}

/** Canonical text of the atlas summary; `graphDigest` is that of the graph as served. */
export function atlas(index: RecognitionIndex, now: number, graphDigest: string): string {
  const edges = index.edges();
  const summary = connectomeSummary(index, now);
  return (
    `{"active_treaty_count":${summary.active_edge_count}` +
    `,"graph_digest":${canonicalJson(graphDigest)}` +
    `,"recognition_edges":${listOf(edges, (edge) => canonicalJson(edgeRow(edge, now)))}` +
    `,"revoked_trust_material_count":${summary.revoked_trust_material_count}` +
    `,"sovereigns":${canonicalJson(sovereignRows(index))}}`
  );
}

/** When the graph next changes by time alone. */
export function nextGraphChange(index: RecognitionIndex, now: number): number {
  let next = Number.POSITIVE_INFINITY;
  for (const { treaty } of index.edges()) next = Math.min(next, nextLifecycleChange(treaty, now));
  return next;
}

function sovereignRows(index: RecognitionIndex): { sovereign_id: string }[] {
  return [...index.sovereigns()]
    .map(({ id }) => ({ sovereign_id: id }))
    .sort((a, b) => compareCodePoints(a.sovereign_id, b.sovereign_id));
}

function activeTreaties(edges: readonly Edge[], now: number): string {
  return listOf(
    edges.filter(({ treaty }) => isLifecycleActive(treaty, now)),
    ({ treaty }) => treaty.json,
  );
}

type Material = JsonObject & { readonly type: string; readonly id: string };

/** Treaties that ended by revocation, then attestations revoked by imported feeds. */
function revokedMaterial(index: RecognitionIndex, edges: readonly Edge[], now: number): Material[] {
  const treaties = edges
    .filter(({ treaty }) => treaty.revokedAt !== null)
    .map(({ treatyId, treaty }): Material => {
      const { state, revocation_reason: reason, revoked_at } = lifecycleOf(treaty, now);
      return {
        type: 'recognition_treaty',
        id: treatyId,
        lifecycle_state: state,
        reason,
        revoked_at,
      };
    });
  return [...treaties, ...index.revocations().map(importedMaterial)];
}

function importedMaterial(revocation: ImportedRevocation): Material {
  return {
    type: 'membership_attestation',
    id: revocation.attestationId,
    issuer_sovereign_id: revocation.issuer,
    feed_id: revocation.feedId,
    sequence: sequenceValue(revocation.sequence),
    reason: revocation.reason,
    revoked_at: formatInstant(revocation.revokedAt),
  };
}

/** One row per imported revocation: who recognizes its issuer, and so is affected. */
function blastRadius(index: RecognitionIndex, now: number): JsonValue {
  return index
    .revocations()
    .map((revocation) => ({
      ...importedMaterial(revocation),
      affected_accepting_sovereigns: acceptingSovereigns(index, revocation.issuer, now),
    }))
    .sort((a, b) => compareCodePoints(a.id, b.id));
}

function acceptingSovereigns(index: RecognitionIndex, issuer: string, now: number): string[] {
  const incoming = index.sovereign(issuer)?.incoming ?? [];
  const active = incoming.filter(({ treaty }) => isLifecycleActive(treaty, now));
  return [...new Set(active.map(({ from }) => from.id))].sort(compareCodePoints);
}

function compareMaterial(a: Material, b: Material): number {
  return compareCodePoints(a.type, b.type) || compareCodePoints(a.id, b.id);
}

/** A sequence as a number again, however large. */
export function sequenceValue(digits: string): number | bigint {
  const value = Number(digits);
  return Number.isSafeInteger(value) ? value : BigInt(digits);
}

function listOf<T>(items: readonly T[], text: (item: T) => string): string {
  return `[${items.map(text).join(',')}]`;
}
