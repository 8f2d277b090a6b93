import { publishedDocument } from '../contract/documents.ts';
import { cachedByBaseUrl } from '../http/cache-by-base-url.ts';
import { documentReply } from '../http/reply.ts';
import type { RouteEntry } from '../http/route.ts';
import { jsonText } from '../json/write.ts';
import { openApiDocument } from '../views/openapi.ts';

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

const descriptionOf = cachedByBaseUrl(({ routes, settings }, baseUrl) =>
  publishedDocument(jsonText(openApiDocument(routes, settings.genesis.network_name, baseUrl))),
);
