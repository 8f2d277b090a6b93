/** The recognition graph and the documents derived from it [core-6]. */
import Type from 'typebox';
import { Dashboard } from '../../protocol/rows/dashboard.ts';
import { Atlas, Connectome, RecognitionGraph, TrustAnswer } from '../../protocol/rows/graph.ts';
import { answerReply, refusalReply } from '../reply.ts';
import { PUBLIC_DOCUMENT, type RouteEntry } from '../route.ts';
import { serveDocument } from './documents.ts';
import {
  consideredReply,
  endsIn,
  furtherIn,
  QUESTION_QUERY,
  QUESTION_REFUSALS,
  tooManyPaths,
} from './trust-question.ts';

export const graphRoutes: readonly RouteEntry[] = [
  {
    ...PUBLIC_DOCUMENT,
    path: '/recognition-graph',
    summary: 'The recognition graph as it is',
    answer: RecognitionGraph,
    refusals: [],
    handle: (request, edge) => serveDocument('recognition_graph', request, edge),
  },
  {
    ...PUBLIC_DOCUMENT,
    path: '/connectome.json',
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
      explain: Type.Optional(
        Type.Enum(['0', '1'], { description: '1 to have the answer explained' }),
      ),
      ...QUESTION_QUERY,
    }),
    summary: 'The shortest path of active treaties between two sovereigns',
    description: `As it is, as it was, or as it would be.

With \`explain\`, \`without\` or \`as_of\` the answer also cites the digest of the recognition graph. \`explain=1\` adds how
long the trust lasts, the scopes of the treaties, which treaties were considered and which test each failed, and the
smallest set of treaties whose end would cut the trust. Questions count in the bucket TRUST_PATH, and explanations also in
EXPLAIN, per address.`,
    answer: TrustAnswer,
    refusals: ['missing_trust_path_parameters', 'invalid_explain', ...QUESTION_REFUSALS],
    async handle(request, edge) {
      const ends = endsIn(request.query);
      if (ends === null) return refusalReply('missing_trust_path_parameters');
      const further = furtherIn(request.query);
      const tooMany = await tooManyPaths(request, edge);
      if (tooMany !== null) return tooMany;
      return further === null
        ? answerReply(await edge.call('trustPath', ends))
        : consideredReply({ ...ends, ...further }, request, edge);
    },
  },
  {
    ...PUBLIC_DOCUMENT,
    path: '/atlas.json',
    summary: 'Summary of the graph with the digest of its canonical form',
    answer: Atlas,
    refusals: [],
    handle: (request, edge) => serveDocument('atlas', request, edge),
  },
  {
    ...PUBLIC_DOCUMENT,
    path: '/dashboard.json',
    summary: 'Health and trust of this sovereign: the model of the dashboard',
    answer: Dashboard,
    refusals: [],
    handle: (request, edge) => serveDocument('dashboard', request, edge),
  },
];
