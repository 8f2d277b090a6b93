/** The recognition graph and what is derived from it (wire rules 6). */
import Type from 'typebox';
import { firstValue } from '../http/query.ts';
import { answerReply, refusalReply } from '../http/reply.ts';
import type { RouteEntry } from '../http/route.ts';
import { RecognitionTreaty } from '../records/recognition-treaty.ts';
import { serveDocument } from './documents.ts';
import { Timestamp } from './scalars.ts';

const SovereignRow = Type.Object({ sovereign_id: Type.String() });

const EdgeRow = Type.Object({
  from: Type.String(),
  to: Type.String(),
  treaty_id: Type.String(),
  status: Type.Enum(['active', 'revoked']),
  lifecycle_state: Type.Enum(['active', 'expiring_soon', 'expired', 'revoked', 'replaced']),
  expiry_risk: Type.Enum(['none', 'low', 'medium', 'high', 'expired']),
  valid_from: Timestamp,
  expires_at: Timestamp,
});

const RevokedMaterial = Type.Object(
  {
    type: Type.Enum(['recognition_treaty', 'membership_attestation']),
    id: Type.String(),
    reason: Type.Union([Type.String(), Type.Null()]),
    revoked_at: Timestamp,
  },
  { additionalProperties: true },
);

const BlastRadiusRow = Type.Object({
  type: Type.Literal('membership_attestation'),
  id: Type.String(),
  issuer_sovereign_id: Type.String(),
  affected_accepting_sovereigns: Type.Array(Type.String()),
  feed_id: Type.String(),
  sequence: Type.Integer(),
  reason: Type.Union([Type.String(), Type.Null()]),
  revoked_at: Timestamp,
});

const Counts = Type.Record(Type.String(), Type.Integer());
const Rows = Type.Array(Type.Object({}, { additionalProperties: true }));

const DashboardModel = Type.Object({
  sovereign: Type.Object({ id: Type.String(), version: Type.String() }),
  readiness: Type.Object({ status: Type.Enum(['ready', 'not_ready']) }),
  nodes: Type.Object({ active: Type.Integer(), tracked: Type.Integer() }),
  connectome_summary: Counts,
  treaty_summary: Counts,
  treaties: Rows,
  revocation_feed_summary: Type.Object({
    count: Type.Integer(),
    freshness: Type.Enum(['none', 'fresh', 'watch', 'stale']),
    stale_count: Type.Integer(),
    watch_count: Type.Integer(),
  }),
  revocation_feeds: Rows,
  trust_cycle_summary: Type.Object({ status: Type.String() }, { additionalProperties: true }),
  recent_changes: Rows,
  warnings: Type.Array(Type.String()),
  links: Type.Record(Type.String(), Type.String()),
});

export const graphRoutes: readonly RouteEntry[] = [
  {
    method: 'GET',
    path: '/recognition-graph',
    access: 'public',
    limit: 'none',
    summary: 'The recognition graph as it is',
    answer: Type.Object({
      sovereigns: Type.Array(SovereignRow),
      recognition_edges: Type.Array(EdgeRow),
      active_treaties: Type.Array(RecognitionTreaty),
      revoked_trust_material: Type.Array(RevokedMaterial),
    }),
    refusals: [],
    handle: (request, edge) => serveDocument('recognition_graph', request, edge),
  },
  {
    method: 'GET',
    path: '/connectome.json',
    access: 'public',
    limit: 'none',
    summary: 'The graph sorted and counted, and whom each imported revocation affects',
    answer: Type.Object({
      summary: Type.Object({
        sovereign_count: Type.Integer(),
        recognition_edge_count: Type.Integer(),
        active_edge_count: Type.Integer(),
        revoked_edge_count: Type.Integer(),
        revoked_trust_material_count: Type.Integer(),
        imported_revocation_count: Type.Integer(),
      }),
      sovereigns: Type.Array(SovereignRow),
      recognition_edges: Type.Array(EdgeRow),
      active_treaties: Type.Array(RecognitionTreaty),
      revoked_trust_material: Type.Array(RevokedMaterial),
      revocation_blast_radius: Type.Array(BlastRadiusRow),
    }),
    refusals: [],
    handle: (request, edge) => serveDocument('connectome', request, edge),
  },
  {
    method: 'GET',
    path: '/connectome/trust-path',
    call: 'trustPath',
    limit: 'none',
    query: {
      from: 'Sovereign that evaluates (also: source)',
      to: 'Sovereign that is evaluated (also: target)',
    },
    summary: 'The shortest path of active treaties between two sovereigns',
    answer: Type.Object({
      from: Type.String(),
      to: Type.String(),
      trusted: Type.Boolean(),
      reason: Type.Enum(['active_treaty_path', 'direct_treaty_revoked', 'no_active_treaty_path']),
      path: Type.Array(EdgeRow),
      hop_count: Type.Integer(),
    }),
    refusals: ['missing_trust_path_parameters'],
    async handle({ query }, edge) {
      const from = firstValue(query, 'from') || firstValue(query, 'source');
      const to = firstValue(query, 'to') || firstValue(query, 'target');
      if (!from || !to) return refusalReply('missing_trust_path_parameters');
      return answerReply(await edge.call('trustPath', { from, to }));
    },
  },
  {
    method: 'GET',
    path: '/atlas.json',
    access: 'public',
    limit: 'none',
    summary: 'Summary of the graph with the digest of its canonical form',
    answer: Type.Object({
      sovereigns: Type.Array(SovereignRow),
      recognition_edges: Type.Array(EdgeRow),
      active_treaty_count: Type.Integer(),
      revoked_trust_material_count: Type.Integer(),
      graph_digest: Type.String(),
    }),
    refusals: [],
    handle: (request, edge) => serveDocument('atlas', request, edge),
  },
  {
    method: 'GET',
    path: '/dashboard.json',
    access: 'public',
    limit: 'none',
    summary: 'Health and trust of this sovereign: the model of the dashboard',
    answer: DashboardModel,
    refusals: [],
    handle: (request, edge) => serveDocument('dashboard', request, edge),
  },
];
