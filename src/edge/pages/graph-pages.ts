/** Pages about the recognition graph: the Connectome and the atlas. */
import { inSlices } from '../../base/work.ts';
import { type AtlasQuestion, atlasPage } from '../../pages/graph/atlas.ts';
import { connectomePage } from '../../pages/graph/connectome.ts';
import type { GraphModel, GraphTreaty } from '../../pages/graph/model.ts';
import {
  parametersOf,
  type TreatyQuery,
  treatiesInOrder,
  treatyQuery,
} from '../../pages/graph/tables.ts';
import type { HtmlPage } from '../../pages/ui/frame.ts';
import type { InputOf } from '../../protocol/api/define.ts';
import type { Api } from '../../protocol/api/table.ts';
import type { TrustPath } from '../../protocol/rows/graph.ts';
import { LIFECYCLE_STATES } from '../../protocol/rows/recognition.ts';
import { cachedBySource } from '../documents/shared-build.ts';
import { type Edge, inTurn, withAnswer } from '../edge.ts';
import type { EdgeParts } from '../operations/operations.ts';
import { tooManyPaths } from '../operations/trust-question.ts';
import { htmlReply, type Reply, refusalReply } from '../reply.ts';
import type { RouteRequest } from '../request/route.ts';
import { type PublishedGraph, withGraph } from './published-content.ts';

export const graphPageParts = {
  showConnectome: {
    answer: (asked, request, edge) =>
      withGraph(request, edge, (graph) =>
        withAnswer(connectomeFor(asked, graph, edge), (page) => htmlReply(page, request)),
      ),
  },
  showAtlas: {
    answer: (asked, request, edge) =>
      withGraph(request, edge, (graph) => answerAtlas(asked, request, edge, graph)),
  },
} satisfies EdgeParts;

function connectomeFor(
  asked: InputOf<Api['showConnectome']>,
  graph: PublishedGraph,
  edge: Edge,
): HtmlPage | Promise<HtmlPage> {
  const query = treatyQuery(asked);
  if (parametersOf(query) === '') return wholeConnectome(graph);
  return inTurn(edge, inOrder(graph, query), (treaties) =>
    connectomePage(graph, graph.version, query, treaties),
  );
}

const wholeConnectome = cachedBySource((graph: PublishedGraph) =>
  connectomePage(graph, graph.version),
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

async function answerAtlas(
  asked: InputOf<Api['showAtlas']>,
  request: RouteRequest,
  edge: Edge,
  graph: PublishedGraph,
): Promise<Reply> {
  if (graph.digest === null) return refusalReply('service_not_ready');
  const question = questionOf(asked);
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

function questionOf({ q, state, sovereign, from, to }: InputOf<Api['showAtlas']>): AtlasQuestion {
  return {
    search: q?.trim() ?? '',
    state: LIFECYCLE_STATES.find((known) => known === state) ?? null,
    sovereign: sovereign ?? '',
    from: from ?? '',
    to: to ?? '',
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
