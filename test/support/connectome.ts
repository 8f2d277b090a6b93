import { withoutPause } from '../../src/base/work.ts';
import { type DrawnGraph, drawnGraph } from '../../src/pages/graph/drawing.ts';
import { graphModel } from '../../src/pages/graph/model.ts';
import type { Connectome } from '../../src/protocol/rows/graph.ts';

/** A Connectome document with this many sovereigns and treaties. */
export function connectomeOf(sovereigns: number, treaties: number): Connectome {
  const name = (index: number) => `sovereign-${String(index % sovereigns).padStart(4, '0')}`;
  return {
    summary: {
      sovereign_count: sovereigns,
      recognition_edge_count: treaties,
      active_edge_count: treaties,
      revoked_edge_count: 0,
      revoked_trust_material_count: 0,
      imported_revocation_count: 0,
    },
    sovereigns: Array.from({ length: sovereigns }, (_, index) => ({ sovereign_id: name(index) })),
    recognition_edges: Array.from({ length: treaties }, (_, index) => ({
      from: name(index),
      to: name(index * 7 + 1 + Math.floor(index / sovereigns)),
      treaty_id: `treaty-${index}`,
      status: 'active',
      lifecycle_state: 'active',
      expiry_risk: 'low',
      valid_from: '2026-01-01T00:00:00Z',
      expires_at: '2026-02-01T00:00:00Z',
    })),
    active_treaties: [],
    revoked_trust_material: [],
    revocation_blast_radius: [],
  };
}

/** The graph of the document, as pages show it. */
export function graphOf(document: Connectome, ownName = 'alpha'): DrawnGraph {
  const model = withoutPause(graphModel(document, ownName));
  return withoutPause(drawnGraph(model));
}
