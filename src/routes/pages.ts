/** Pages about the service itself: rendered once, then served from the same bytes. */
import { ANY_URL, cachedByBaseUrl } from '../http/cache-by-base-url.ts';
import { withAnswer } from '../http/edge.ts';
import { htmlReply } from '../http/reply.ts';
import type { RouteEntry } from '../http/route.ts';
import { apiReferencePages } from '../pages/api-reference.ts';
import { cliReferencePage } from '../pages/cli-reference.ts';
import { homePage } from '../pages/home.ts';
import { inSlices } from '../slices.ts';

export const HTML = { contentType: 'text/html; charset=utf-8' } as const;

export const pageRoutes: readonly RouteEntry[] = [
  {
    method: 'GET',
    path: '/',
    access: 'public',
    limit: 'none',
    hasEtag: true,
    summary: 'Home page with links to the routes',
    answer: HTML,
    refusals: [],
    handle: (request, edge) => htmlReply(home(edge, request.baseUrl), request),
  },
  {
    method: 'GET',
    path: '/api-reference',
    access: 'public',
    limit: 'none',
    hasEtag: true,
    summary: 'This HTTP surface to read',
    answer: HTML,
    refusals: [],
    handle: (request, edge) =>
      withAnswer(apiReference(edge, request.baseUrl), (page) => htmlReply(page, request)),
  },
  {
    method: 'GET',
    path: '/cli-reference',
    access: 'public',
    limit: 'none',
    hasEtag: true,
    summary: 'The commands of mesh-na to read',
    answer: HTML,
    refusals: [],
    handle: (request, edge) => htmlReply(cliReference(edge, ANY_URL), request),
  },
];

const home = cachedByBaseUrl(({ settings, routes }, baseUrl) =>
  homePage(settings.genesis, routes, baseUrl),
);

const apiReferences = cachedByBaseUrl(({ settings, routes }) =>
  inSlices(apiReferencePages(routes, settings.genesis.network_name)),
);

const apiReference = cachedByBaseUrl((edge, baseUrl) =>
  withAnswer(apiReferences(edge, ANY_URL), (pages) => pages(baseUrl)),
);

const cliReference = cachedByBaseUrl(({ settings }) =>
  cliReferencePage(settings.commands, settings.genesis.network_name),
);
