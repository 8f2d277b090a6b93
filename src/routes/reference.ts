import { publishedDocument } from '../contract/documents.ts';
import { ANY_URL, cachedByBaseUrl } from '../http/cache-by-base-url.ts';
import { documentReply } from '../http/reply.ts';
import type { RouteEntry } from '../http/route.ts';
import { openApiText } from '../views/openapi.ts';

export const referenceRoutes: readonly RouteEntry[] = [
  {
    method: 'GET',
    path: '/swagger.json',
    access: 'public',
    limit: 'none',
    hasEtag: true,
    summary: 'This HTTP surface as OpenAPI 3.0.3',
    answer: { contentType: 'application/json' },
    refusals: [],
    handle: (request, edge) => documentReply(descriptionOf(edge, request.baseUrl), request),
  },
];

const descriptions = cachedByBaseUrl(({ routes, settings }) =>
  openApiText(routes, settings.genesis.network_name),
);

const descriptionOf = cachedByBaseUrl((edge, baseUrl) =>
  publishedDocument(descriptions(edge, ANY_URL)(baseUrl)),
);
