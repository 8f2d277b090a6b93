/** Pages about the service itself, rendered once and then served from the same bytes, and the ends of live pages. */

import Type from 'typebox';
import { inSlices } from '../../base/slices.ts';
import { apiReferencePage } from '../../pages/api-reference.ts';
import { cliReferencePage } from '../../pages/cli-reference.ts';
import { homePage } from '../../pages/home.ts';
import { openApiText } from '../../pages/reference/openapi.ts';
import { searchEntries, searchPage } from '../../pages/search.ts';
import type { Dashboard } from '../../protocol/rows/dashboard.ts';
import { addressedDocument } from '../addressed-document.ts';
import { type Edge, keyFingerprint, withAnswer } from '../edge.ts';
import { LIVE_PATH } from '../live-pages.ts';
import { firstValue } from '../query.ts';
import { addressedReply, htmlReply, refusalReply } from '../reply.ts';
import { PUBLIC_DOCUMENT, PUBLIC_PAGE, type RouteEntry } from '../route.ts';
import { currentDocument } from './documents.ts';
import { filter } from './listing.ts';
import { dashboardIn, keptByEtag, withGraph } from './published-content.ts';
import { cachedBySource } from './shared-build.ts';

export const pageRoutes: readonly RouteEntry[] = [
  {
    ...PUBLIC_PAGE,
    path: '/',
    summary: 'Home page with links to the routes',
    refusals: [],
    handle: (request, edge) =>
      withAnswer(currentDocument('dashboard', request.now, edge), (dashboard) =>
        htmlReply(dashboard === undefined ? homeOf(edge, null) : home(edge, dashboard), request),
      ),
  },
  {
    ...PUBLIC_PAGE,
    path: '/api-reference',
    summary: 'The HTTP surface, as a page',
    refusals: [],
    handle: (request, edge) => withAnswer(apiReference(edge), (page) => htmlReply(page, request)),
  },
  {
    ...PUBLIC_PAGE,
    path: '/cli-reference',
    summary: 'The commands of mesh-na, as a page',
    refusals: [],
    handle: (request, edge) => htmlReply(cliReference(edge), request),
  },
  // `edge/viewers.ts` handles the upgrade to a WebSocket.
  {
    method: 'GET',
    path: LIVE_PATH,
    usesBaseUrl: true,
    access: 'public',
    limit: 'none',
    query: Type.Object({
      topic: Type.Enum(['dashboard', 'connectome'], { description: 'The page' }),
    }),
    summary: 'WebSocket that sends what changed on a live page',
    description: 'For pages of this site only. What is sent to it is ignored.',
    answer: Type.Object({ topic: Type.String(), version: Type.String() }),
    exampleNeeds: { what: 'an upgrade to a WebSocket', otherwise: 'upgrade_required' },
    refusals: ['upgrade_required', 'unknown_live_topic', 'foreign_origin', 'shutting_down'],
    handle: () => refusalReply('upgrade_required', {}, 'Upgrade', 'websocket'),
  },
];

const home = keptByEtag((edge, dashboard) => homeOf(edge, dashboardIn(edge, dashboard)));

function homeOf({ settings, routes }: Edge, dashboard: Dashboard | null) {
  const { authorityKeys, publicUrl } = settings;
  const { genesis, current } = authorityKeys;
  return homePage({ genesis, fingerprint: keyFingerprint(current), publicUrl }, routes, dashboard);
}

const apiReference = cachedBySource(({ settings, routes }: Edge) =>
  inSlices(apiReferencePage(routes, settings.genesis.network_name, settings.publicUrl)),
);

const cliReference = cachedBySource(({ settings }: Edge) =>
  cliReferencePage(settings.commands, settings.genesis.network_name),
);

/** The search over everything public, and the description of the routes for programs. */
export const referenceRoutes: readonly RouteEntry[] = [
  {
    ...PUBLIC_PAGE,
    path: '/search',
    limit: 'SEARCH',
    query: Type.Object({ q: filter('Words that must all be in a name, a path or a description') }),
    summary: 'Sovereigns, treaties, pages, routes and commands by parts of their names, as a page',
    refusals: ['service_not_ready'],
    handle: (request, edge) =>
      withGraph(request, edge, (graph) =>
        htmlReply(
          searchPage(firstValue(request.query, 'q') ?? '', entriesOf(edge), graph),
          request,
        ),
      ),
  },
  {
    ...PUBLIC_DOCUMENT,
    path: '/swagger.json',
    usesBaseUrl: true,
    summary: 'This HTTP surface as OpenAPI 3.0.3',
    answer: { contentType: 'application/json' },
    refusals: [],
    handle: (request, edge) => addressedReply(description(edge), request.baseUrl, request),
  },
];

const entriesOf = cachedBySource(({ routes, settings }: Edge) =>
  searchEntries(routes, settings.commands),
);

const description = cachedBySource(({ routes, settings }: Edge) =>
  addressedDocument(openApiText(routes, settings.genesis.network_name)),
);
