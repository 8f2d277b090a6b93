/** Pages for operators of the network: the dashboard, the Connectome and the atlas. */
import Type from 'typebox';
import type { PublishedDocument } from '../contract/documents.ts';
import type { Edge } from '../http/edge.ts';
import { firstValue } from '../http/query.ts';
import { type HtmlPage, htmlReply, type Reply, refusalReply, textReply } from '../http/reply.ts';
import type { RouteEntry, RouteRequest } from '../http/route.ts';
import { type AtlasQuestion, atlasPage, sovereignNamed } from '../pages/atlas.ts';
import { connectomeMain, connectomePage } from '../pages/connectome.ts';
import { dashboardPage } from '../pages/dashboard.ts';
import { EDGE_STATES, type GraphModel } from '../pages/graph-model.ts';
import { LivePageContent } from '../pages/live-content.ts';
import { treatiesCsv } from '../pages/treaties-csv.ts';
import {
  EVERY_TREATY,
  foundTreaties,
  parametersOf,
  TREATY_ORDERS,
  type TreatyQuery,
  treatyQuery,
} from '../pages/treaty-query.ts';
import type { Dashboard } from '../views/rows/dashboard.ts';
import type { Atlas, TrustPath } from '../views/rows/graph.ts';
import { filter } from './listing.ts';
import { contentOf, keptByEtag, modelOf, networkOf, withDocument } from './published-content.ts';

const HTML = { contentType: 'text/html; charset=utf-8' };

const CSV = 'text/csv; charset=utf-8';

const TREATY_PARAMETERS = {
  q: filter('Part of the name of either sovereign, or of the id'),
  state: Type.Optional(Type.Enum([...EDGE_STATES], { description: 'Lifecycle state' })),
  sort: Type.Optional(
    Type.Enum(
      TREATY_ORDERS.flatMap((order) => [order, `-${order}`]),
      { description: 'Column to sort by; with a minus sign in descending order' },
    ),
  ),
};

function pageNumber(what: string) {
  const options = { minimum: 1, default: 1, description: `Which page of the ${what}` };
  return Type.Optional(Type.Integer(options));
}

export const operatorPageRoutes: readonly RouteEntry[] = [
  {
    method: 'GET',
    path: '/dashboard',
    access: 'public',
    limit: 'none',
    hasEtag: true,
    summary: 'Health and trust of this sovereign, as a page',
    answer: HTML,
    refusals: ['service_not_ready'],
    handle: (request, edge) =>
      withDocument('dashboard', request, edge, (document) =>
        htmlReply(dashboardOf(edge, document), request),
      ),
  },
  {
    method: 'GET',
    path: '/connectome',
    access: 'public',
    limit: 'none',
    query: Type.Object({
      ...TREATY_PARAMETERS,
      page: pageNumber('treaties'),
      blast: pageNumber('imported revocations'),
      material: pageNumber('revoked trust material'),
    }),
    hasEtag: true,
    summary: 'The recognition graph with its counts, treaties and revocations, as a page',
    answer: HTML,
    refusals: ['service_not_ready'],
    handle: (request, edge) =>
      withDocument('connectome', request, edge, (document) =>
        htmlReply(connectomeFor(request, edge, document), request),
      ),
  },
  {
    method: 'GET',
    path: '/connectome/treaties.csv',
    access: 'public',
    limit: 'none',
    query: Type.Object(TREATY_PARAMETERS),
    summary: 'The treaties of the Connectome for a spreadsheet',
    answer: { contentType: CSV },
    refusals: ['service_not_ready'],
    handle: (request, edge) =>
      withDocument('connectome', request, edge, (document) => {
        const { recognition_edges: edges } = modelOf(edge, document).document;
        return textReply(CSV, treatiesCsv(foundTreaties(edges, queryOf(request))));
      }),
  },
  {
    method: 'GET',
    path: '/atlas',
    access: 'public',
    limit: 'none',
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
    hasEtag: true,
    summary: 'The recognition graph to explore, as a page',
    answer: HTML,
    refusals: ['service_not_ready'],
    handle: (request, edge) =>
      withDocument('connectome', request, edge, (document) => answerAtlas(request, edge, document)),
  },
];

const dashboardOf = keptByEtag(
  (edge, document): HtmlPage => dashboardPage(contentOf<Dashboard>(document), networkOf(edge)),
);

const connectomeContentOf = keptByEtag(
  (edge, document) => new LivePageContent(connectomeMain(modelOf(edge, document))),
);

const connectomeOf = keptByEtag((edge, document) => connectomeView(EVERY_TREATY, edge, document));

function connectomeView(query: TreatyQuery, edge: Edge, document: PublishedDocument): HtmlPage {
  const whole = connectomeContentOf(edge, document);
  return connectomePage(modelOf(edge, document), whole, networkOf(edge), query);
}

function connectomeFor(request: RouteRequest, edge: Edge, document: PublishedDocument): HtmlPage {
  const query = queryOf(request);
  return parametersOf(query) === ''
    ? connectomeOf(edge, document)
    : connectomeView(query, edge, document);
}

function queryOf({ query }: RouteRequest): TreatyQuery {
  return treatyQuery((name) => firstValue(query, name) ?? '');
}

const digestOf = keptByEtag((_edge, document) => contentOf<Atlas>(document).graph_digest);

async function answerAtlas(
  request: RouteRequest,
  edge: Edge,
  document: PublishedDocument,
): Promise<Reply> {
  // Published together with the Connectome, so that the cached one belongs to the same graph.
  const atlas = edge.documents.latest('atlas');
  if (atlas === undefined) return refusalReply('service_not_ready');
  const model = modelOf(edge, document);
  const question = questionOf(request);
  const path = await trustPathOf(model, question, edge);
  const answer = { path, graphDigest: digestOf(edge, atlas) };
  return htmlReply(atlasPage(model, question, answer, networkOf(edge)), request);
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
  const from = sovereignNamed(model, question.from)?.id ?? question.from;
  const to = sovereignNamed(model, question.to)?.id ?? question.to;
  const answer = await edge.call('trustPath', { from, to });
  return answer.ok ? (JSON.parse(answer.json) as TrustPath) : null;
}
