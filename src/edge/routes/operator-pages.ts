/** Pages about the recognition graph: the Connectome and the atlas. */
import Type from 'typebox';
import { inSlices } from '../../base/slices.ts';
import { type AtlasQuestion, atlasPage } from '../../pages/atlas.ts';
import { connectomePage } from '../../pages/connectome.ts';
import type { HtmlPage } from '../../pages/frame.ts';
import { EDGE_STATES, type GraphModel, type GraphTreaty } from '../../pages/graph-model.ts';
import {
  EVERY_TREATY,
  parametersOf,
  TREATY_ORDERS,
  type TreatyQuery,
  treatiesInOrder,
  treatyQuery,
} from '../../pages/treaty-query.ts';
import type { TrustPath } from '../../protocol/rows/graph.ts';
import { type Edge, withAnswer } from '../edge.ts';
import { firstValue } from '../query.ts';
import { htmlReply, type Reply, refusalReply } from '../reply.ts';
import { PUBLIC_PAGE, type RouteEntry, type RouteRequest } from '../route.ts';
import { filter, pageParameter } from './listing.ts';
import { connectomeContent, type PublishedGraph, withGraph } from './published-content.ts';
import { cachedBySource } from './shared-build.ts';
import { tooManyPaths } from './trust-question.ts';

export const operatorPageRoutes: readonly RouteEntry[] = [
  {
    ...PUBLIC_PAGE,
    path: '/connectome',
    limit: 'SEARCH',
    query: Type.Object({
      q: filter('Part of the name of either sovereign, or of the id'),
      state: Type.Optional(Type.Enum([...EDGE_STATES], { description: 'Lifecycle state' })),
      sort: Type.Optional(
        Type.Enum(
          TREATY_ORDERS.flatMap((order) => [order, `-${order}`]),
          { description: 'Column to sort by; with a minus sign in descending order' },
        ),
      ),
      page: pageParameter('the treaties'),
      blast: pageParameter('the imported revocations'),
      material: pageParameter('the revoked trust material'),
    }),
    summary: 'The recognition graph with its counts, treaties and revocations, as a page',
    refusals: ['service_not_ready'],
    handle: (request, edge) =>
      withGraph(request, edge, (graph) =>
        withAnswer(connectomeFor(request, graph), (page) => htmlReply(page, request)),
      ),
  },
  {
    ...PUBLIC_PAGE,
    path: '/atlas',
    limit: 'SEARCH',
    query: Type.Object({
      q: filter('Part of the names of sovereigns to show'),
      state: Type.Optional(
        Type.Enum([...EDGE_STATES], {
          description: 'Lifecycle state that a treaty of theirs must have',
        }),
      ),
      sovereign: filter('Sovereign whose treaties and evidence to show'),
      from: filter('Sovereign that evaluates, for a trust path'),
      to: filter('Sovereign that is evaluated'),
    }),
    summary: 'The recognition graph to explore, as a page',
    description: 'A question for a trust path counts in the bucket TRUST_PATH, per address.',
    refusals: ['service_not_ready'],
    handle: (request, edge) =>
      withGraph(request, edge, (graph) => answerAtlas(request, edge, graph)),
  },
];

function connectomeFor(request: RouteRequest, graph: PublishedGraph): HtmlPage | Promise<HtmlPage> {
  const query = queryOf(request);
  if (parametersOf(query) === '') return wholeConnectome(graph);
  return withAnswer(inOrder(graph, query), (treaties) =>
    connectomePage(graph, connectomeContent(graph), query, treaties),
  );
}

const wholeConnectome = cachedBySource((graph: PublishedGraph) =>
  connectomePage(graph, connectomeContent(graph), EVERY_TREATY),
);

type Sorted = readonly GraphTreaty[];

const orders = cachedBySource(
  (_graph: PublishedGraph) => new Map<string, Sorted | Promise<Sorted>>(),
);

/** Sorted once for each version of the graph, however many ask. */
function inOrder(graph: PublishedGraph, query: TreatyQuery): Sorted | Promise<Sorted> {
  const kept = orders(graph);
  const name = `${query.isDescending} ${query.order}`;
  const sorted = kept.get(name) ?? inSlices(treatiesInOrder(graph, query));
  kept.set(name, sorted);
  return sorted;
}

function queryOf({ query }: RouteRequest): TreatyQuery {
  return treatyQuery((name) => firstValue(query, name) ?? '');
}

async function answerAtlas(
  request: RouteRequest,
  edge: Edge,
  graph: PublishedGraph,
): Promise<Reply> {
  if (graph.digest === null) return refusalReply('service_not_ready');
  const question = questionOf(request);
  const asksForPath = question.from !== '' && question.to !== '';
  const tooMany = asksForPath ? await tooManyPaths(request, edge) : null;
  if (tooMany !== null) return tooMany;
  const isWhole = Object.values(question).every((part) => part === '' || part === null);
  if (isWhole) return htmlReply(wholeAtlas(graph), request);
  const path = await trustPathOf(graph, question, edge);
  return htmlReply(atlasView(question, graph, path), request);
}

const NO_QUESTION: AtlasQuestion = { search: '', state: null, sovereign: '', from: '', to: '' };

const wholeAtlas = cachedBySource((graph: PublishedGraph) => atlasView(NO_QUESTION, graph, null));

function atlasView(
  question: AtlasQuestion,
  graph: PublishedGraph,
  path: TrustPath | null,
): HtmlPage {
  return atlasPage(graph, question, { path, graphDigest: graph.digest ?? '' });
}

function questionOf({ query }: RouteRequest): AtlasQuestion {
  const given = (name: string) => firstValue(query, name) ?? '';
  return {
    search: given('q').trim(),
    state: EDGE_STATES.find((state) => state === given('state')) ?? null,
    sovereign: given('sovereign'),
    from: given('from'),
    to: given('to'),
  };
}

async function trustPathOf(
  model: GraphModel,
  question: AtlasQuestion,
  edge: Edge,
): Promise<TrustPath | null> {
  if (question.from === '' || question.to === '') return null;
  const from = model.named(question.from)?.id ?? question.from;
  const to = model.named(question.to)?.id ?? question.to;
  const answer = await edge.call('trustPath', { from, to });
  return answer.ok ? (JSON.parse(answer.json) as TrustPath) : null;
}
