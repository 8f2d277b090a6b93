/** The recognition graph and what is derived from it [core-6]. */
import Type from 'typebox';
import { firstValue } from '../http/query.ts';
import { answerReply, refusalReply } from '../http/reply.ts';
import type { RouteEntry } from '../http/route.ts';
import { Dashboard } from '../views/rows/dashboard.ts';
import { Atlas, Connectome, RecognitionGraph, TrustPath } from '../views/rows/graph.ts';
import { serveDocument } from './documents.ts';

export const graphRoutes: readonly RouteEntry[] = [
  {
    method: 'GET',
    path: '/recognition-graph',
    access: 'public',
    limit: 'none',
    summary: 'The recognition graph as it is',
    answer: RecognitionGraph,
    refusals: [],
    handle: (request, edge) => serveDocument('recognition_graph', request, edge),
  },
  {
    method: 'GET',
    path: '/connectome.json',
    access: 'public',
    limit: 'none',
    summary: 'The graph sorted and counted, and whom each imported revocation affects',
    answer: Connectome,
    refusals: [],
    handle: (request, edge) => serveDocument('connectome', request, edge),
  },
  {
    method: 'GET',
    path: '/connectome/trust-path',
    call: 'trustPath',
    limit: 'none',
    query: Type.Object({
      from: Type.String({ description: 'Sovereign that evaluates (also: source)' }),
      to: Type.String({ description: 'Sovereign that is evaluated (also: target)' }),
    }),
    summary: 'The shortest path of active treaties between two sovereigns',
    answer: TrustPath,
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
    answer: Atlas,
    refusals: [],
    handle: (request, edge) => serveDocument('atlas', request, edge),
  },
  {
    method: 'GET',
    path: '/dashboard.json',
    access: 'public',
    limit: 'none',
    summary: 'Health and trust of this sovereign: the model of the dashboard',
    answer: Dashboard,
    refusals: [],
    handle: (request, edge) => serveDocument('dashboard', request, edge),
  },
];
